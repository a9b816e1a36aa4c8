"""AUDEE's causal localisation (Algorithm 2): which parameters make targets differ on a layer.

Pure: what a change of a parameter does is asked of a function. A parameter is a cause when the
difference disappears with other values of it, everything else being equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.outputs import Outputs
from outvote.judge.compare import mismatch_of
from outvote.localize.introduction import EPSILON, deviation

T1 = 1000.0  # change rate of a layer that is suspected (section 3.3)
T2 = 2.0  # change rate below which the difference is gone
_MOST = 5  # values tried per parameter
_SHARE = 0.5  # of the values that must make the difference disappear


@dataclass(frozen=True)
class Effect:
    """What two targets did with a layer after a change: the largest R, or how one failed."""

    rate: float
    failure: str = ""  # "crash" or "nan"


@dataclass(frozen=True)
class Cause:
    """A parameter whose present value makes targets differ, and values with which they agree."""

    parameter: str
    value: Any
    cured_by: tuple[Any, ...]
    tried: int


@dataclass(frozen=True)
class Accident:
    """A crash or NaN met on the way, with the value that brought it (lines 10 to 12)."""

    parameter: str
    value: Any
    failure: str


Measure = Callable[[str, Any], Effect | None]
"""The effect of one parameter set to another value; None where no such layer can be made."""


def causes(
    parameters: Mapping[str, Any],
    others: Callable[[str, Any], Sequence[Any]],
    measure: Measure,
    t2: float = T2,
) -> tuple[list[Cause], list[Accident]]:
    """Every parameter that is a cause, those cured by most of their other values first.

    The paper replaces each value once. Here several are tried, simple ones first, and the simplest
    or half of them must cure: any one value may hide a difference by chance, as a stride does that
    happens to need no padding.
    """
    found: list[Cause] = []
    accidents: list[Accident] = []
    for name, value in parameters.items():
        cured: list[Any] = []
        tried = 0
        simplest = False
        for other in list(others(name, value))[:_MOST]:
            effect = measure(name, other)
            if effect is None:
                continue
            if effect.failure:
                accidents.append(Accident(name, other, effect.failure))
                continue
            tried += 1
            if effect.rate < t2:
                cured.append(other)
                simplest = simplest or tried == 1
        if cured and (simplest or len(cured) >= _SHARE * tried):
            found.append(Cause(name, value, tuple(cured), tried))
    return sorted(found, key=lambda cause: -len(cause.cured_by) / cause.tried), accidents


def change_rate(a: Outputs, b: Outputs, tolerance: float = 0.0) -> float:
    """R of a layer that both targets were given the same tensors for, so that δ_pre is 0.

    ε grows with the size of the outputs: on outputs of 1e6 rounding alone would exceed t1 else.
    What is within `tolerance` (relative to that size) is rounding, and counts as 0.
    """
    delta = deviation(a, b)
    if mismatch_of(a, b) is not None or not np.isfinite(delta):
        return float("inf")
    size = max(1.0, _size(a))
    if delta <= tolerance * size:
        return 0.0
    return delta / (EPSILON * size)


def _size(outputs: Outputs) -> float:
    """Mean size of the numbers in some outputs."""
    flat = [array.reshape(-1).astype(np.float64) for array in outputs.arrays]
    whole = np.concatenate(flat) if flat else np.zeros(0)
    finite = np.abs(whole[np.isfinite(whole)])
    return float(finite.mean()) if finite.size else 0.0
