"""Performance bugs (LEMON, section 5.1): one target whose time or memory goes out of line.

Drift: the same model, run now and then during the campaign, takes longer and longer, or its
worker holds more and more. Slow case: one mutant that takes one target far longer than the
others, and again when it is repeated, when nothing has to be compiled any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from outvote.store.store import Sample

_FEWEST = 7  # samples before a drift is believed
_TIMES_SLOWER = 3.0
# A worker of 1 GiB that leaks evenly is replaced at 3 GiB, long before it is three times as large.
_TIMES_LARGER = 1.8
_STILL = 1.2  # what fills a cache stops growing; a leak does not
_SLOW_SECONDS = 0.5  # a case below this is not called slow
_MOST = 0.5  # share of the time lost that one kind of layer has to explain
_OUT_OF_LINE = 20.0  # times slower than usual, against the other targets


@dataclass(frozen=True)
class Drift:
    """A target whose time or memory for the same work grew, and the series that shows it."""

    target: str
    what: str  # seconds or bytes
    before: float
    after: float
    series: tuple[tuple[int, float], ...]  # (mutant, value)


def drifts(samples: Sequence[Sample]) -> list[Drift]:
    """Targets that got slower or larger since their last start, and not all of them alike.

    A busy machine slows every target; so growth counts against the least grown target.
    """
    series: dict[str, list[Sample]] = {}
    for sample in samples:
        kept = series.setdefault(sample.target, [])
        if kept and kept[-1].restarts != sample.restarts:
            kept.clear()
        kept.append(sample)
    found = []
    for what, limit in (("seconds", _TIMES_SLOWER), ("bytes", _TIMES_LARGER)):
        growth = {
            target: _growth([float(getattr(s, what)) for s in kept])
            for target, kept in series.items()
            if len(kept) >= _FEWEST
        }
        if not growth:
            continue
        common = max(1.0, min(after / before for before, after in growth.values()))
        for target, (before, after) in growth.items():
            grows = what == "seconds" or _still_grows([float(s.bytes) for s in series[target]])
            if after / before > limit * common and grows:
                points = tuple((s.mutant, float(getattr(s, what))) for s in series[target])
                found.append(Drift(target, what, before, after, points))
    return found


def _growth(values: Sequence[float]) -> tuple[float, float]:
    """Typical value of the first and of the last third."""
    third = max(3, len(values) // 3)
    # The first sample includes what is done once: compiling, filling caches.
    return max(median(values[1 : third + 1]), 1e-6), median(values[-third:])


def _still_grows(values: Sequence[float]) -> bool:
    """Whether the second half of a series grew too."""
    half = values[len(values) // 2 :]
    return median(half[-2:]) > _STILL * median(half[:2])


def culprit(
    seconds: Mapping[str, Mapping[str, float]], kinds: Mapping[str, str], target: str
) -> str | None:
    """The slowest layer of the kind on which a target loses most of its time to the others.

    `seconds`: by target and layer; `kinds`: of the layers. None where no kind explains most of it.
    """
    lost: dict[str, float] = {}
    for layer, taken in seconds[target].items():
        others = [own[layer] for name, own in seconds.items() if name != target and layer in own]
        lost[layer] = max(0.0, taken - median(others)) if others else 0.0
    for kind in dict.fromkeys(kinds[layer] for layer in lost):
        own = {layer: value for layer, value in lost.items() if kinds[layer] == kind}
        if sum(own.values()) > _MOST * sum(lost.values()):
            return max(own, key=lambda layer: own[layer])
    return None


def slow_targets(seconds: Mapping[str, float], usual: Mapping[str, float]) -> list[str]:
    """Targets that take far longer for one case than for others, measured by their rivals."""
    found = []
    for name, taken in seconds.items():
        others = [seconds[n] / max(usual[n], 1e-6) for n in seconds if n != name]
        if not others or taken < _SLOW_SECONDS:
            continue
        own = taken / max(usual[name], 1e-6)
        if own > _OUT_OF_LINE * max(1.0, median(others)):
            found.append(name)
    return found
