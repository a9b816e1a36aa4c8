"""Delta debugging: the smallest specimen that still shows the same (Zeller & Hildebrandt, 2002).

Greedy: a reduction is applied as often as it helps, then the next, until none helps any more or
the time is up. What must stay is for the caller to say, as a predicate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outvote.core.specimen import Specimen
from outvote.triage.reductions import Builder, Reduction, reductions_for


@dataclass(frozen=True)
class Minimal:
    """The smallest specimen, and what it took."""

    specimen: Specimen
    before: Specimen
    seconds: float
    tried: int
    complete: bool  # False: the time was up

    @property
    def smaller(self) -> bool:
        return self.specimen is not self.before


def minimise(
    specimen: Specimen,
    shows: Callable[[Specimen], bool],
    builder: Builder,
    seconds: float,
    reductions: Sequence[Reduction] | None = None,
) -> Minimal:
    """Shrink it while `shows` holds. The specimen given is taken to show it."""
    began = time.monotonic()
    best = specimen
    ways = reductions_for(specimen.model) if reductions is None else reductions
    seen = {specimen.key(builder.blobs)}
    complete = False
    while not complete:
        complete = True
        for reduction in ways:
            found = _first(reduction, best, shows, builder, seen, began + seconds)
            while found is not None:
                complete, best = False, found
                found = _first(reduction, best, shows, builder, seen, began + seconds)
        if time.monotonic() > began + seconds:
            complete = False
            break
    return Minimal(best, specimen, time.monotonic() - began, len(seen) - 1, complete)


def _first(
    reduction: Reduction,
    specimen: Specimen,
    shows: Callable[[Specimen], bool],
    builder: Builder,
    seen: set[str],
    until: float,
) -> Specimen | None:
    """The first candidate that still shows it; each is tried once only."""
    for candidate in reduction(specimen, builder):
        if time.monotonic() > until:
            return None
        key = candidate.key(builder.blobs)
        if key in seen:
            continue
        seen.add(key)
        if shows(candidate):
            return candidate
    return None
