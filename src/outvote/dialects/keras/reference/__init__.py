"""An independent float64 reference: what a layer should give, in plain NumPy, by its documentation.

It breaks ties between libraries and shows when a majority shares one wrong formula. Every other
file of this folder that has a `KINDS` is one family of layers. Outside what they cover the
answer is None, never a guess.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.plugins import modules_in
from outvote.core.states import State
from outvote.dialects.keras.reference.call import Call, NotCovered, call_of

Compute = Callable[[Call], list[Array]]
# What NumPy and Python raise where a layer cannot be computed at all: a kernel larger than its
# input, an axis that is not there. Targets may accept such a case; the reference does not.
REFUSED = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
# The mean of no instances is NaN, as it is elsewhere: nobody need be warned of it.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=re.escape(__name__))


def reference(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> list[Array] | None:
    """The layer's outputs in inference mode, in float64; None where there are none to be had."""
    try:
        return strict_reference(layer, weights, given)
    except REFUSED:
        return None


def strict_reference(
    layer: Layer, weights: Sequence[Array], given: Sequence[State]
) -> list[Array] | None:
    """The same; None where this is not covered. It raises where nothing can be computed."""
    try:
        # NaN and infinity in the input are numbers like others here: they go where they go.
        with np.errstate(all="ignore"):
            return compute(call_of(layer, weights, given))
    except NotCovered:
        return None


def compute(call: Call) -> list[Array]:
    """The outputs of one call; raises NotCovered. Wrappers use it for what they wrap."""
    kinds = _kinds()
    if call.kind not in kinds:
        raise NotCovered(f"no formula for {call.kind}")
    outputs = kinds[call.kind](call)
    call.require_all_read()
    return outputs


def covered() -> frozenset[str]:
    """The kinds of layers that have a formula here."""
    return frozenset(_kinds())


def is_exact(kind: str, covered: bool) -> bool:
    """Whether a kind only compares, selects or moves numbers: a tie there is not rounding."""
    return any(kind in family.EXACT for family in _families())


@functools.cache
def _kinds() -> dict[str, Compute]:
    return {kind: make for family in _families() for kind, make in family.KINDS.items()}


@functools.cache
def _families() -> tuple[Any, ...]:
    """The modules of this folder that are families, found by their `KINDS`."""
    return tuple(module for module in modules_in(__name__) if hasattr(module, "KINDS"))
