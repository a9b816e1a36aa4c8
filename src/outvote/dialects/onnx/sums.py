"""What sums of products come to in float32, if their terms are added one after the other.

That is the plainest way to compute them (Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, section 4.1: recursive summation). Its error depends on the numbers: where all terms
are alike, every addition is rounded to the same side. Who is no farther from the exact sum than
that is no worse than the plainest way, and nothing else can be said against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.states import State
from outvote.dialects.onnx.reference import REFUSED
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered, call_of
from outvote.dialects.onnx.reference.windows import convolution

Terms = Iterable[tuple[Array, Array]]  # factors that broadcast to the form of the sum
_ADDED = "float32"  # narrower types are added in float32 as a rule, which their places do not show


def in_turn(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> list[list[Array]]:
    """What a node gives, for each order in which its terms lie; none where it is no such sum."""
    compute = _SUMS.get(layer.kind)
    if compute is None:
        return []
    try:
        call = call_of(layer, weights, given)
        if any(dtype != _ADDED for dtype in call.types if dtype):
            return []
        found = list(compute(call))
        call.require_all_read()
        return [[one] for one in found]
    except REFUSED:
        return []


def _added(terms: Terms) -> Array:
    total: Array | None = None
    with np.errstate(all="ignore"):
        for a, b in terms:
            product = a.astype(np.float32) * b.astype(np.float32)
            total = product if total is None else total + product
    if total is None:
        raise Uncovered("a sum of nothing")
    return total.astype(np.float64)


def _columns(a: Array, b: Array) -> Terms:
    """Of a matrix product: each column of the first times its row of the second."""
    return ((a[..., k, None], b[..., k, None, :]) for k in range(a.shape[-1]))


def _matmul(call: NodeCall) -> Iterator[Array]:
    a, b = call.floats(0), call.floats(1)
    if min(a.ndim, b.ndim) < 2:
        raise Uncovered("a vector")
    yield _added(_columns(a, b))


def _gemm(call: NodeCall) -> Iterator[Array]:
    a, b, c = call.floats(0), call.floats(1), call.arg(2)
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    y = call.get("alpha", 1.0) * _added(_columns(a, b))
    yield y if c is None else y + call.get("beta", 1.0) * c


def _conv(call: NodeCall) -> Iterator[Array]:
    """Channel by channel, as the kernel lies, and position by position, as with channels last."""
    told, bias = convolution(call, call.floats(0), call.floats(1)), call.arg(2)
    last = (1, -1, *(1,) * len(told.places))
    seen, channels = told.seen(), range(told.weight.shape[2])

    def term(place: int, channel: int) -> tuple[Array, Array]:
        some, w = seen[place]
        return some[:, :, None, channel], w[..., channel].reshape(*w.shape[:2], *last[2:])

    for order in (
        [(place, channel) for channel in channels for place in range(len(seen))],
        [(place, channel) for place in range(len(seen)) for channel in channels],
    ):
        y = told.joined(_added(term(*one) for one in order))
        yield y if bias is None else y + bias.reshape(last)


_SUMS: dict[str, Callable[[NodeCall], Iterator[Array]]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
}
