"""A binary search that steps over releases which cannot be tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Positions of the last release that behaves as before and the first that does not."""

    before: int
    after: int


def narrowed(interval: Interval, as_before: Callable[[int], bool | None]) -> Iterator[Interval]:
    """Ever smaller intervals around the change. `as_before` says None for what cannot be tried."""
    broken: set[int] = set()
    while True:
        between = [i for i in range(interval.before + 1, interval.after) if i not in broken]
        if not between:
            return
        middle = (interval.before + interval.after) / 2
        place = min(between, key=lambda i: abs(i - middle))
        answer = as_before(place)
        if answer is None:
            broken.add(place)
            continue
        before, after = (place, interval.after) if answer else (interval.before, place)
        interval = Interval(before, after)
        yield interval
