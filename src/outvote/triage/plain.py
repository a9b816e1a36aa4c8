"""Arrays that can be written as a short expression: what a minimal script is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array

Pattern = Callable[[Sequence[int]], Array]


def _counted(shape: Sequence[int]) -> Array:
    return np.arange(math.prod(shape), dtype=np.float64).reshape(tuple(shape))


# Expression (with {n} numbers and {shape}) and what it gives; the plainest first.
PATTERNS: Sequence[tuple[str, Pattern]] = (
    ("np.zeros({shape})", lambda shape: np.zeros(tuple(shape))),
    ("np.ones({shape})", lambda shape: np.ones(tuple(shape))),
    ("np.arange({n}.0).reshape({shape})", _counted),
    ("(np.arange({n}) % 5 - 2.0).reshape({shape})", lambda shape: _counted(shape) % 5 - 2.0),
    ("np.cos(np.arange({n})).reshape({shape})", lambda shape: np.cos(_counted(shape))),
)
_MOST = 200  # numbers written out in a script; more come from a file


def expression(array: Array) -> str | None:
    """Python for the array; None if it is too long to write out."""
    shape = array.shape
    size = math.prod(shape)
    if array.dtype.kind == "f" and size > 1:
        for text, pattern in PATTERNS:
            if np.array_equal(pattern(shape).astype(array.dtype), array):
                found = text.format(n=size, shape=_tuple(shape))
                return found if array.dtype == np.float64 else f'{found}.astype("{array.dtype}")'
    if size > _MOST:
        return None
    if not size:
        return f'np.zeros({_tuple(shape)}, "{array.dtype}")'
    return f'np.array({written(array)}, "{array.dtype}")'


def written(array: Array) -> str:
    """The numbers as nested lists."""
    if array.ndim:
        return f"[{', '.join(written(item) for item in array)}]"
    if array.dtype.kind == "U":
        return repr(str(array))
    return _number(array) if array.dtype.kind == "f" else str(array)


def _number(value: Any) -> str:
    if math.isnan(value):
        return "np.nan"
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return (
        np.format_float_positional(value, trim="0")
        if 1e-4 <= abs(float(value)) < 1e6 or value == 0
        else (np.format_float_scientific(value))
    )


def _tuple(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
