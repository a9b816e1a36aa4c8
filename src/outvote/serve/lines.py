"""Lines over the time of a campaign, as points of an SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from outvote.core.events import MutantsTested

WIDTH, HEIGHT = 480, 110
_SLICES = 60
_MOST = 200  # points of a line


@dataclass(frozen=True)
class Chart:
    """Lines with one scale: the largest value, the last second, and the points of each."""

    title: str
    top: float
    end: float
    lines: dict[str, str]


def chart(title: str, lines: dict[str, list[tuple[float, float]]]) -> Chart | None:
    """Lines of (second, value); None where there is nothing to draw."""
    every = [point for line in lines.values() for point in line]
    if len(every) < 2:
        return None
    end = max(at for at, _ in every) or 1.0
    top = max(value for _, value in every)
    drawn = {
        name: " ".join(
            f"{at / end * WIDTH:.1f},{HEIGHT - value / (top or 1.0) * HEIGHT:.1f}"
            for at, value in line
        )
        for name, line in lines.items()
    }
    return Chart(title, top, end, drawn)


def rates(points: Sequence[MutantsTested]) -> list[tuple[float, float]]:
    """Cases a minute in equal slices of the time."""
    line = [(p.seconds, p.tested) for p in points]
    step = max(1, len(line) // _SLICES)
    kept = line[::step]
    if len(line) > 1 and kept[-1] != line[-1]:
        kept.append(line[-1])
    slices = pairwise(kept)
    return [(b[0], 60 * (b[1] - a[1]) / (b[0] - a[0])) for a, b in slices if b[0] > a[0]]


def steps(seconds: Sequence[float], end: float) -> list[tuple[float, float]]:
    """How many there were at each second: a staircase that stays small, however many there are."""
    if not seconds:
        return []
    every = max(1, len(seconds) // _MOST)
    line = [(0.0, 0.0)]
    for place in range(0, len(seconds), every):
        line += [(seconds[place], float(line[-1][1])), (seconds[place], float(place + 1))]
    last = max(end, seconds[-1])
    return [*line, (last, float(len(seconds)))]


def totals(line: Sequence[Sequence[float]], end: float) -> list[tuple[float, float]]:
    """A number that grows, at some seconds, as a line that stays small and lasts to the end."""
    if not line:
        return []
    step = max(1, len(line) // _MOST)
    kept = [(at, value) for at, value in (*line[::step], line[-1])]
    return [(0.0, 0.0), *kept, (max(end, kept[-1][0]), kept[-1][1])]


def coverage(points: Sequence[MutantsTested]) -> dict[str, list[tuple[float, float]]]:
    """Kinds of layers, and classes of their parameters' values, each in parts of its last."""
    lines = {
        "kinds of layers": [(p.seconds, float(p.kinds)) for p in points],
        "classes of parameter values": [(p.seconds, float(p.values)) for p in points],
    }
    return {name: _parts(line) for name, line in lines.items() if line and line[-1][1]}


def _parts(line: list[tuple[float, float]]) -> list[tuple[float, float]]:
    last = line[-1][1]
    return [(at, value / last) for at, value in line]
