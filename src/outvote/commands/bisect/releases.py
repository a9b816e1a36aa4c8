"""A binary search that steps over releases which cannot be tried; of a cluster, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Positions of the last release that behaves as before and the first that does not."""

    before: int
    after: int


def narrowed(
    interval: Interval, as_before: Callable[[Sequence[int]], Sequence[bool | None]], at_once: int
) -> Iterator[Interval]:
    """Ever smaller intervals around the change; so many places are asked for at once.

    `as_before` says None for what cannot be tried.
    """
    broken: set[int] = set()
    while True:
        between = [i for i in range(interval.before + 1, interval.after) if i not in broken]
        if not between:
            return
        width = (interval.after - interval.before) / (at_once + 1)
        even = [interval.before + n * width for n in range(1, at_once + 1)]
        places = sorted({min(between, key=lambda i: abs(i - place)) for place in even})
        answers = dict(zip(places, as_before(places), strict=True))
        broken |= {place for place, answer in answers.items() if answer is None}
        if set(places) <= broken:
            continue
        after = next((place for place in places if answers[place] is False), interval.after)
        before = max((p for p in places if answers[p] and p < after), default=interval.before)
        interval = Interval(before, after)
        yield interval
