"""Tensor types of ONNX: their names and codes, and how their numbers travel.

What NumPy has travels as it is. Narrow types (bfloat16, the 8-, 6- and 4-bit floats, the 4- and
2-bit integers) travel widened to a type that NumPy has and that holds each of their numbers
exactly, beside the name of the type they stand for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import TEXT, Array

CODES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    TEXT: 8,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}
NAMES = {code: name for name, code in CODES.items()}
_BITS = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}


def is_narrow(name: str) -> bool:
    """Whether NumPy lacks the type."""
    return CODES.get(name, 0) > CODES["uint64"]


def carrier(name: str) -> np.dtype[Any]:
    """The type of NumPy in which numbers of a type travel."""
    if not is_narrow(name):
        return np.dtype(name)
    return np.dtype({"i": np.int8, "u": np.uint8}.get(name[0], np.float32))


def dtype_of(name: str) -> np.dtype[Any]:
    """The type itself, as NumPy or its extension has it."""
    if not is_narrow(name):
        return np.dtype(name)
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


def widened(array: Array) -> Array:
    """An array as it travels."""
    return array.astype(carrier(array.dtype.name), copy=False)


def as_texts(array: Array) -> Array:
    """Texts as libraries give them, objects or bytes, as they travel."""
    told = [one.decode() if isinstance(one, bytes) else str(one) for one in array.reshape(-1)]
    return np.array(told, np.str_).reshape(array.shape)


def narrowed(array: Array, name: str) -> Array:
    """An array that has travelled, in the type that it stands for."""
    if name == TEXT:
        return array
    return array.astype(dtype_of(name), copy=False)


def raw_bytes(array: Array, name: str) -> bytes:
    """The bytes of a tensor in a file: little-endian, several to a byte where they are small."""
    exact = np.ascontiguousarray(narrowed(array, name))
    bits = _BITS.get(name)
    if bits is None:
        return exact.astype(exact.dtype.newbyteorder("<"), copy=False).tobytes()
    each = 8 // bits
    codes = exact.reshape(-1).view(np.uint8) & (2**bits - 1)
    padded = np.zeros(-(-codes.size // each) * each, np.uint8)
    padded[: codes.size] = codes
    lanes = padded.reshape(-1, each) << (bits * np.arange(each, dtype=np.uint8))
    return bytes(np.bitwise_or.reduce(lanes, axis=1))


def from_raw(raw: bytes | Array, name: str, shape: Sequence[int]) -> Array:
    """The tensor whose bytes these are: the inverse of `raw_bytes`."""
    exact = dtype_of(name)
    bits = _BITS.get(name)
    if bits is None:
        whole: Array = np.frombuffer(raw, exact).reshape(tuple(shape))
        return whole
    each = 8 // bits
    codes = np.frombuffer(raw, np.uint8)[:, None] >> (bits * np.arange(each, dtype=np.uint8))
    flat = (codes & (2**bits - 1)).reshape(-1)[: math.prod(shape)]
    if name.startswith("int"):  # the sign stands in the highest of the few bits
        flat = np.where(flat >> (bits - 1), flat | (256 - 2**bits), flat).astype(np.uint8)
    unpacked: Array = flat.view(exact).reshape(tuple(shape))
    return unpacked
