"""Operators that turn numbers into another type, and those that work on bits and remainders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.nouns.types import NAMES
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered


@dataclass(frozen=True)
class Float8:
    """A type of eight bits: bits behind the point, the smallest exponent, the largest number."""

    bits: int
    least: int
    largest: float
    signed_zero: bool = True

    def of(self, x: Array) -> Array:
        """Rounded to the nearest, halves to even; nothing is larger than the largest."""
        size = np.abs(np.where(np.isfinite(x), x, 0.0))
        exponent = np.maximum(np.frexp(size)[1] - 1, self.least)
        step = np.ldexp(1.0, exponent - self.bits)
        rounded = np.minimum(np.rint(size / step) * step, self.largest)
        found = np.copysign(np.where(np.isinf(x), self.largest, rounded), x)
        found = found if self.signed_zero else np.where(found == 0, 0.0, found)
        return np.where(np.isnan(x), x, found)


_FLOAT8 = {
    "float8_e4m3fn": Float8(3, -6, 448.0),
    "float8_e4m3fnuz": Float8(3, -7, 240.0, signed_zero=False),
    "float8_e5m2": Float8(2, -14, 57344.0),
    "float8_e5m2fnuz": Float8(2, -15, 57344.0, signed_zero=False),
}
_FLOATS = ("float64", "float32", "float16", "bfloat16")


def _power_of_two(x: Array) -> Array:
    """float8e8m0, rounded up: there is no zero, no sign and no bit behind the point."""
    if not ((x >= 2.0**-127) & (x <= 2.0**127)).all():
        raise Uncovered("a number beyond the powers of two of the type")
    part, exponent = np.frexp(x)
    return np.asarray(np.ldexp(1.0, np.where(part == 0.5, exponent - 1, exponent)))


def _converted(x: Array, dtype: str, round_mode: str) -> Array:
    if dtype == "float8_e8m0fnu" and round_mode == "up":
        return _power_of_two(x.astype(np.float64))
    if dtype in _FLOAT8:
        return _FLOAT8[dtype].of(x.astype(np.float64))
    if dtype in _FLOATS:
        return x.astype(np.float64)
    if dtype == "bool":
        return np.asarray(x != 0)
    if dtype not in np.sctypeDict or np.dtype(dtype).kind not in "iu":
        raise Uncovered(f"a cast to {dtype}")
    if x.dtype.kind == "f":
        ends, whole = np.iinfo(dtype), np.trunc(x)
        if not ((whole >= ends.min) & (whole < float(ends.max) + 1)).all():
            raise Uncovered("undefined: a number beyond the integers of the type")
        return whole.astype(dtype)
    return x.astype(dtype)  # higher bits are discarded


def _cast(call: NodeCall) -> list[Array]:
    dtype = NAMES.get(int(call.get("to")), "")
    call.only("saturate", 1)
    return [_converted(call.need(0), dtype, str(call.get("round_mode", "up")))]


def _cast_like(call: NodeCall) -> list[Array]:
    call.only("saturate", 1)
    return [_converted(call.need(0), call.types[1], str(call.get("round_mode", "up")))]


def _shifted(call: NodeCall) -> list[Array]:
    """Bits that leave the type are discarded; what is shifted by its width or more is all sign."""
    x, by = np.broadcast_arrays(call.need(0), call.need(1))
    bits = x.dtype.itemsize * 8
    outside = (by < 0) | (by >= bits)
    if call.opset < 28 and outside.any():
        raise Uncovered("shifts by more than there are bits, before opset 28")
    inside = np.where(outside, 0, by).astype(x.dtype)
    if call.only("direction", "LEFT", "RIGHT") == "LEFT":
        return [np.where(outside, 0, np.left_shift(x, inside)).astype(x.dtype)]
    sign = np.where(x < 0, -1, 0) if x.dtype.kind == "i" else 0
    return [np.where(outside, sign, np.right_shift(x, inside)).astype(x.dtype)]


def _remainder(call: NodeCall) -> list[Array]:
    a, b = call.need(0), call.need(1)
    truncates = bool(call.get("fmod", 0))
    if a.dtype.kind != "f" and (b == 0).any():
        raise Uncovered("a remainder of integers divided by zero")
    if a.dtype.kind == "f" and call.opset < 28 and not truncates:
        raise Uncovered("floats without fmod, before opset 28")
    return [np.asarray(np.fmod(a, b) if truncates else np.mod(a, b))]


OPERATORS = {
    "Cast": _cast,
    "CastLike": _cast_like,
    "BitShift": _shifted,
    "Mod": _remainder,
}
