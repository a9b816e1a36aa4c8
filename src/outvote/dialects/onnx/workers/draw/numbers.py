"""Numbers for inputs and constants: mostly where functions are defined, some where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.nouns.types import carrier

_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -1e30, 0.5, 1.5, 2.5)
_RARE = 0.15  # of the numbers among special ones


class Range(Enum):
    """Where numbers come from."""

    INNER = "between 0.1 and 0.9: where logarithms, roots and arcs are defined"
    NORMAL = "around zero"
    POSITIVE = "between 1 and 3"
    TIES = "halves and whole numbers, many of them alike"
    WIDE = "of very different sizes"
    SPECIAL = "zeros of both signs, infinities, NaN, very small and large ones among others"
    INDEX = "zero or one: small enough to count with"

    ALL: ClassVar[tuple[Range, ...]]


Range.ALL = (
    *(Range.INNER,) * 5,
    *(Range.NORMAL,) * 4,
    *(Range.POSITIVE,) * 2,
    *(Range.TIES,) * 2,
    Range.WIDE,
    Range.SPECIAL,
)


def drawn(rng: np.random.Generator, shape: Sequence[int], dtype: str, kind: Range) -> Array:
    """Numbers of a type, in the form in which it travels."""
    held = carrier(dtype)
    if dtype == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if held.kind != "f":
        return _whole(rng, shape, held, kind)
    with np.errstate(over="ignore"):  # infinity is a number of narrow types
        return np.asarray(_floats(rng, shape, kind)).astype(held)


def _whole(
    rng: np.random.Generator, shape: Sequence[int], held: np.dtype[np.generic], kind: Range
) -> Array:
    if kind is Range.INDEX:
        return np.asarray(rng.integers(0, 2, shape)).astype(held)
    low = 0 if held.kind == "u" else -4
    found = np.asarray(rng.integers(low, 10, shape)).astype(held)
    if kind is Range.SPECIAL:
        ends = np.array([np.iinfo(held).min, np.iinfo(held).max, 0], held)  # type: ignore[type-var]
        found = np.where(rng.random(shape) < _RARE, rng.choice(ends, shape), found)
    return np.asarray(found)


def _floats(rng: np.random.Generator, shape: Sequence[int], kind: Range) -> Array:
    if kind is Range.INNER:
        return rng.uniform(0.1, 0.9, shape)
    if kind is Range.POSITIVE:
        return rng.uniform(1.0, 3.0, shape)
    if kind is Range.TIES:
        return rng.integers(-3, 4, shape) / 2
    normal = np.asarray(rng.standard_normal(shape))
    if kind is Range.WIDE:
        return normal * 10.0 ** rng.integers(-6, 7, shape)
    if kind is Range.SPECIAL:
        return np.where(rng.random(shape) < _RARE, rng.choice(_SPECIAL, shape), normal)
    return normal
