"""Operators that round numbers to the steps of a scale.

Where rounding on the way, in one type or another, could take a number over a step, there is no
exact result: what is covered here is decided by ONNX' text alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered
from outvote.dialects.onnx.reference.windows import convolved

_STEPS = ("uint8", "int8", "uint16", "int16")


def _settled(numbers: Sequence[Array]) -> Array:
    """The nearest whole number, halves to even, of a quotient that was computed in several ways."""
    first, *others = map(np.rint, numbers)
    if any(not np.array_equal(first, other) for other in others):
        raise Uncovered("a quotient that rounding takes to another step")
    if np.isnan(first).any():
        raise Uncovered("a step for what is no number")
    return np.asarray(first, np.float64)


def _quotients(x: Array, scale: Array) -> list[Array]:
    narrow = x.astype(np.float32) / scale.astype(np.float32)
    return [x / scale, narrow.astype(np.float64)]


def _along(x: Array, array: Array, axis: int) -> Array:
    """A scale or zero point for all of x, or for each place of one axis."""
    if array.size == 1:
        return array.reshape(())
    if array.ndim != 1 or array.size != x.shape[axis]:
        raise Uncovered("scales of blocks")
    return array.reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])


def _saturated(steps: Array, dtype: str) -> Array:
    ends = np.iinfo(dtype)
    return np.clip(steps, ends.min, ends.max).astype(dtype)


def _quantize(call: NodeCall) -> list[Array]:
    """y = saturate(x / y_scale + y_zero_point); x / y_scale is rounded to the nearest even."""
    x, scale, zero = call.floats(0), call.floats(1), call.arg(2)
    axis = int(call.get("axis", 1))
    dtype = "uint8" if zero is None else call.types[2]
    call.only("output_dtype", 0)
    call.only("precision", 0)
    call.get("saturate")  # of float 8 alone
    call.only("block_size", 0)
    if dtype not in _STEPS:
        raise Uncovered(f"QuantizeLinear to {dtype}")
    steps = _settled(_quotients(x, _along(x, scale, axis)))
    if zero is not None:
        steps = steps + _along(x, zero.astype(np.float64), axis)
    return [_saturated(steps, dtype)]


def _dequantize(call: NodeCall) -> list[Array]:
    """y = (x - x_zero_point) * x_scale."""
    x, scale, zero = call.need(0).astype(np.float64), call.floats(1), call.arg(2)
    axis = int(call.get("axis", 1))
    call.only("output_dtype", 0)
    call.only("block_size", 0)
    if zero is not None:
        x = x - _along(x, zero.astype(np.float64), axis)
    return [x * _along(x, scale, axis)]


def _dynamic_quantize(call: NodeCall) -> list[Array]:
    x = call.floats()
    if not x.size or not np.isfinite(x).all():
        raise Uncovered("a range without ends")
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    if low == high:
        raise Uncovered("a scale of zero")
    scale = np.asarray((high - low) / 255)
    zero = np.clip(_settled(_quotients(np.asarray(-low), scale)), 0, 255)
    steps = _settled(_quotients(x, scale))
    return [_saturated(steps + zero, "uint8"), scale, zero.astype(np.uint8)]


def _q_matmul(call: NodeCall) -> list[Array]:
    """The product of whole numbers is exact; scaled, it is rounded to the nearest even."""
    sides = [call.need(n).astype(np.float64) for n in (0, 3)]
    scales = [call.floats(n) for n in (1, 4, 6)]
    zeros = [call.need(n).astype(np.float64) for n in (2, 5, 7)]
    if any(array.size != 1 for array in (*scales, *zeros)):
        raise Uncovered("scales of rows")
    (a, b, y), (za, zb, zy) = ([n.reshape(()) for n in some] for some in (scales, zeros))
    total = np.matmul(sides[0] - za, sides[1] - zb)
    narrow = [np.float32(n) for n in (a, b, y)]
    steps = _settled([
        total * (a * b / y),
        (total.astype(np.float32) * (narrow[0] * narrow[1] / narrow[2])).astype(np.float64),
        (total.astype(np.float32) * (narrow[0] * narrow[1]) / narrow[2]).astype(np.float64),
    ])  # fmt: skip
    return [_saturated(steps + zy, call.types[7])]


def _q_conv(call: NodeCall) -> list[Array]:
    """Of real numbers alone: ONNX does not say how what lies between two steps is rounded."""
    x, w, bias = call.need(0), call.need(3), call.arg(8)
    if x.dtype.kind != "f":
        raise Uncovered("what QLinearConv rounds to")
    scales = [call.floats(n) for n in (1, 4, 6)]
    zero_w = call.need(5)
    if any(call.need(n).size != 1 for n in (1, 2, 6, 7)):
        raise Uncovered("scales of an input's channels")
    per_channel = (-1, *(1,) * (w.ndim - 1))
    w = w - (zero_w.reshape(per_channel) if zero_w.size > 1 else zero_w.reshape(()))
    y = convolved(call, x - call.need(2).reshape(()), w, bias)
    spread = (1, -1, *(1,) * (y.ndim - 2))
    scale = scales[0].reshape(()) * scales[1].reshape(-1) / scales[2].reshape(())
    return [y * scale.reshape(spread if scale.size > 1 else ()) + call.need(7).reshape(())]


OPERATORS = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "QLinearMatMul": _q_matmul,
    "QLinearConv": _q_conv,
}
