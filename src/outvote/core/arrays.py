"""Arrays as raw bytes plus (dtype, shape): the only form in which they cross a process or a disk.

No pickle: another process may run another NumPy, and its bytes are not trusted.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from outvote.core.errors import ProtocolError

Array = npt.NDArray[Any]

# bfloat16 travels as its 16 bits and is widened to float32, which is exact.
_WIRE_TYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64"),
    )
} | {"bfloat16": np.dtype("<u2")}
_TEXTS = re.compile(r"<U[1-9]\d{0,5}")  # texts, all with room for the longest
TEXT = "string"  # as tensors of texts call their type


def dtype_name(array: Array) -> str:
    """The name under which an array travels; raises for what cannot travel."""
    if array.dtype.kind == "U":
        return f"<U{max(1, array.dtype.itemsize // 4)}"
    name = array.dtype.name
    if name not in _WIRE_TYPES:
        raise ProtocolError(f"arrays of dtype {name} cannot be sent; use one of {_known()}")
    return name


def _wire_type(name: object) -> np.dtype[Any]:
    """How an array of that name lies in bytes; raises for what cannot travel."""
    if isinstance(name, str) and _TEXTS.fullmatch(name):
        return np.dtype(name)
    if name not in _WIRE_TYPES:
        raise ProtocolError(f"unknown array dtype {name!r}; expected one of {_known()}")
    return _WIRE_TYPES[str(name)]


def to_bytes(array: Array) -> memoryview:
    """The raw little-endian bytes of an array, without a copy where it is contiguous."""
    wire = _wire_type(dtype_name(array))
    flat = np.ascontiguousarray(array)
    flat = flat.view(wire) if array.dtype.name == "bfloat16" else flat.astype(wire, copy=False)
    return flat.reshape(-1).view(np.uint8).data


def byte_size(name: object, shape: object) -> int:
    """How many bytes an announced array takes; refuses an announcement that makes no sense."""
    wire = _wire_type(name)
    if not isinstance(shape, Sequence) or not all(
        isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape
    ):
        raise ProtocolError(f"an array shape is a list of sizes; received {shape!r}")
    return math.prod(shape) * wire.itemsize


def from_bytes(name: str, shape: Sequence[int], data: Any) -> Array:
    """The array that `to_bytes` wrote; a view of `data` except for bfloat16."""
    flat: Array = np.frombuffer(data, dtype=_wire_type(name), count=math.prod(shape))
    return decoded(name, flat).reshape(tuple(shape))


def decoded(name: str, wire: Array) -> Array:
    """Wire integers of bfloat16 as the float32 numbers they stand for; others unchanged."""
    if name != "bfloat16":
        return wire
    return (wire.astype(np.uint32) << 16).view(np.float32)


def travels(name: str) -> bool:
    """Whether arrays of that type can be sent."""
    return name in _WIRE_TYPES or name == TEXT


def as_numbers(array: Array) -> Array:
    """An array that can be compared: of texts a number each, the same for the same text."""
    if array.dtype.kind != "U":
        return array
    digests = [hashlib.sha256(text.encode()).digest()[:6] for text in array.reshape(-1).tolist()]
    codes = np.array([int.from_bytes(digest) for digest in digests], np.int64)
    return codes.reshape(array.shape)


def _known() -> str:
    return ", ".join(_WIRE_TYPES)
