"""How numbers and lists are put into words; Markdown and HTML say them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

MISSING = "not a number"
_TONES = {
    "consistent": "good",
    "unchanged": "good",
    "inconsistent": "bad",
    "changed": "bad",
    "interrupted": "warn",
}
# What a command calls its verdicts, where it says more than the verdict itself.
_WORDS: dict[str, dict[str | None, str]] = {
    "explore": {
        "inconsistent": "differences found",
        "consistent": "nothing found",
        "interrupted": "stopped early",
    },
    "pollution": {
        "inconsistent": "suspects found",
        "consistent": "nothing suspected",
        "interrupted": "stopped early",
    },
    "coverage": {None: "measured"},
    "report": {None: "compared"},
}
BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def word(result: dict[str, Any]) -> str:
    """The verdict in a word or two; a result without one says what was done."""
    verdict = result["verdict"]
    if result["command"] == "fuzz":  # a campaign has come to its end or not, whatever it found
        return "stopped" if result["interrupted"] else "done"
    own = {} if "comparisons" in result else _WORDS.get(result["command"], {})
    return own.get(verdict, str(verdict))


def tone(result: dict[str, Any]) -> str:
    """How the verdict looks: good, bad, warn, or calm where nothing is judged."""
    return _TONES.get(result["verdict"], "calm")


def number(value: float | None) -> str:
    """Three digits that matter: 0.0312, 1.2e-7, 40210."""
    if value is None:
        return MISSING
    if isinstance(value, int) or value == 0:
        return str(int(value))
    size = abs(value)
    if 100 <= size < 1e6:
        return f"{value:.0f}"
    if 1e-3 <= size < 100:
        return f"{value:.3g}"
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits.removesuffix('.0')}e{int(exponent)}"


def size(value: int | None) -> str:
    """Bytes in the largest unit that leaves at least one."""
    if value is None:
        return "–"
    amount = float(value)
    for unit in BYTES[:-1]:
        if amount < 1024:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} {BYTES[-1]}"


def duration(value: float | None) -> str:
    """Seconds, or minutes from two minutes on."""
    if value is None:
        return "–"
    if value < 120:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min"


def share(value: float | None) -> str:
    """A part of one as a percentage."""
    return "–" if value is None else f"{100 * value:.1f} %"


def spread(figure: dict[str, Any], form: Callable[[float | None], str] = number) -> str:
    """A mean with its standard deviation, if several were measured: 28.8 ± 4.1."""
    if figure["mean"] is None:
        return "–"
    if figure["deviation"] is None:
        return form(figure["mean"])
    return f"{form(figure['mean'])} ± {form(figure['deviation'])}"


def some(values: Sequence[Any], most: int = 8) -> str:
    """The first few of a list, and how many more there are."""
    shown = ", ".join(str(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"


def label(comparison: dict[str, Any]) -> str:
    """What a pair of targets is called: inconsistent, rounding or consistent."""
    if comparison.get("inconsistent"):
        return "inconsistent"
    return str(comparison.get("explained") or "consistent")


def maximum(comparison: dict[str, Any], metric: str) -> tuple[float | None, bool]:
    """The largest distance of a pair by one metric over all outputs, and whether there is one.

    NaN, written as null, is larger than any number.
    """
    values = [m.get("maximum") for m in comparison.get("metrics", []) if m["name"] == metric]
    if not values or None in values:
        return None, bool(values)
    return max(values), True


def main_metric(comparisons: Sequence[dict[str, Any]]) -> str | None:
    """The metric that most pairs share; one metric makes the pairs comparable.

    Of equals, `relative` comes first because it needs no ground truth and has no upper bound.
    """
    names = [m["name"] for c in comparisons for m in c.get("metrics", [])]
    order = ["relative", "mad", "class"]
    known = [name for name in order if name in names] + [n for n in names if n not in order]
    return max(known, key=names.count) if known else None


def answers(told: Mapping[str, Any] | None) -> str:
    """What a transformation does to the answers of a classifier."""
    if told is None:
        return ""
    changed = f"{told['top1_changed']} of {told['instances']} changed"
    distance = told["class_distance"]
    return changed if distance is None else f"{changed}, D_CLASS {number(distance)}"
