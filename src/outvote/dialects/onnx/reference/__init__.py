"""An independent float64 reference: what a node should give, in plain NumPy, by ONNX' text.

It breaks ties between runtimes and shows when a majority shares one wrong formula. Every other
file of this folder that has `OPERATORS` is one family of them. Outside what they cover the answer
is None, never a guess.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.plugins import modules_in
from outvote.core.states import State
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered, call_of

# What NumPy and Python raise where a node cannot be computed at all.
REFUSED = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, Uncovered)

_COMPARE = frozenset(
    "And ArgMax ArgMin BitShift Cast CastLike Ceil Clip Compress Equal Floor GlobalMaxPool Greater "
    "GreaterOrEqual Hardmax IsInf IsNaN Less LessOrEqual Max MaxPool Min NonZero Not OneHot Or "
    "ReduceMax ReduceMin Relu Round Sign TopK Unique Where Xor".split()
)
# These divide before they round; their formulas cover what no rounding of the quotient changes.
_SETTLED = frozenset(["QuantizeLinear", "QLinearMatMul"])


def reference(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> list[Array] | None:
    """The node's outputs, floats in float64; None where there are none to be had."""
    try:
        return strict_reference(layer, weights, given)
    except REFUSED:
        return None


def strict_reference(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> list[Array]:
    """The same; it raises where nothing can be computed."""
    compute = formulas().get(layer.kind)
    if compute is None:
        raise Uncovered(layer.kind)
    call = call_of(layer, weights, given)
    with np.errstate(all="ignore"):
        found = compute(call)
    call.require_all_read()
    return [found[place] for place in call.outputs]


def is_exact(kind: str, covered: bool) -> bool:
    """Whether such a node only compares, selects or moves numbers: a tie there is not rounding."""
    module = importlib.import_module(f"{__name__}.movement")
    return kind in module.OPERATORS or kind in _COMPARE or (covered and kind in _SETTLED)


@functools.cache
def formulas() -> dict[str, Callable[[NodeCall], list[Array]]]:
    """Every operator that is covered, by the files of this folder."""
    found: dict[str, Callable[[NodeCall], list[Array]]] = {}
    for module in modules_in(__name__):
        found |= getattr(module, "OPERATORS", {})
    return found
