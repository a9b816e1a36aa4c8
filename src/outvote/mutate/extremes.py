"""Numbers that break things: a pool of structured extremes for inputs and weights.

Faults hide where numbers are far from their mean, at the borders of types, equal, missing or not
numbers at all. Each way fills a tensor with one property. Add one to `WAYS`: a function of a shape,
a type and a generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from outvote.core.arrays import Array

Shape = Sequence[int]
Way = Callable[[Shape, str, np.random.Generator], Array]

# The smallest normal number and the largest of each type.
_RANGE = {
    "float16": (2.0**-14, 65504.0),
    "bfloat16": (2.0**-126, (2 - 2.0**-7) * 2.0**127),
    "float32": (2.0**-126, (2 - 2.0**-23) * 2.0**127),
    "float64": (2.0**-1022, (2 - 2.0**-52) * 2.0**1023),
}
_SOME = 0.15  # of the places, that get what is special
_STEPS = np.arange(-6, 7) / 2  # borders that parameters usually name
# Borders of the narrow types, and of whole numbers that float16 and float32 hold.
_BORDERS = np.array([2048.0, 65504.0, 65520.0, 2.0**-14, 2.0**-24, 2.0**-25, 2.0**24, 2.0**31])


def usual(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    return rng.standard_normal(shape)


def offset(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """A small spread around a large mean."""
    return float(rng.choice([1e2, 1e3, 1e4, -1e4])) + rng.standard_normal(shape)


def huge(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """So large that squares, sums or exponentials of some do not fit."""
    top = np.log2(_RANGE[dtype][1])
    return _signs(shape, rng) * 2.0 ** rng.uniform(top / 2 - 1, top - 1, shape)


def tiny(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """So small that squares of some vanish."""
    bottom = np.log2(_RANGE[dtype][0])
    return _signs(shape, rng) * 2.0 ** rng.uniform(bottom, bottom / 2 + 1, shape)


def subnormal(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Below the smallest normal number, among usual ones."""
    small = rng.uniform(-1, 1, shape) * _RANGE[dtype][0]
    return _some(usual(shape, dtype, rng), small, rng, 0.5)


def wide(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Sizes of many orders of magnitude, side by side."""
    top = min(30.0, np.log10(_RANGE[dtype][1]) - 0.5)
    return _signs(shape, rng) * 10.0 ** rng.uniform(-top, top, shape)


def moderate(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """A few dozen: where exponentials saturate and formulas change over."""
    return rng.uniform(-40, 40, shape)


def ties(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Whole numbers of which many are equal."""
    return rng.integers(-2, 3, shape).astype(np.float64)


def steps(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Multiples of a half: the borders of bins and the thresholds that one gives."""
    return np.asarray(rng.choice(_STEPS, shape))


def beside_steps(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """A last place of float32 beside such a border."""
    chosen = rng.choice(_STEPS, shape).astype(np.float32)
    away = np.nextafter(chosen, np.float32(np.inf) * _signs(shape, rng).astype(np.float32))
    return np.asarray(away.astype(np.float64))


def borders(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Around the largest and smallest numbers of narrow types."""
    places = rng.choice([1 - 2.0**-9, 1.0, 1 + 2.0**-9], shape)
    return np.asarray(_signs(shape, rng) * rng.choice(_BORDERS, shape) * places)


def zeros(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    return np.zeros(shape)


def signed_zeros(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    return _some(usual(shape, dtype, rng), np.copysign(0.0, _signs(shape, rng)), rng, 0.7)


def infinities(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    return _some(usual(shape, dtype, rng), _signs(shape, rng) * np.inf, rng)


def nans(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    return _some(usual(shape, dtype, rng), np.full(shape, np.nan), rng)


def constant(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """One number for all, or for each channel: no spread at all."""
    channels = shape[-1:] if rng.random() < 0.5 else ()
    return np.broadcast_to(rng.standard_normal(channels) * float(rng.choice([1, 100])), shape)


def special(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Infinities, NaN and zeros of both signs among usual numbers."""
    odd = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0], shape)
    return _some(usual(shape, dtype, rng), odd, rng, 0.5)


def positive(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """As pixels are."""
    return rng.uniform(0, 255, shape)


WAYS: Sequence[Way] = (
    *(offset, huge, tiny, subnormal, wide, moderate, ties, steps, beside_steps, borders),
    *(zeros, signed_zeros, infinities, nans, special, constant, positive),
)
FINITE: Sequence[Way] = tuple(way for way in WAYS if way not in (infinities, nans, special))


def any_way(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    return WAYS[int(rng.integers(len(WAYS)))](shape, dtype, rng)


def medley(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Every number by a way of its own: for what computes each from one."""
    drawn = np.stack([np.asarray(way(shape, dtype, rng), np.float64) for way in WAYS])
    chosen = rng.integers(0, len(WAYS), (1, *shape))
    return np.asarray(np.take_along_axis(drawn, chosen, axis=0)[0])


def one_of(ways: Sequence[Way], rng: np.random.Generator) -> Way:
    return ways[int(rng.integers(len(ways)))]


def by_instance(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Every instance of the batch by a way of its own."""
    ways = [WAYS[int(n)] for n in rng.integers(0, len(WAYS), shape[0])]
    rows = [np.asarray(way(shape[1:], dtype, rng), np.float64) for way in ways]
    return np.stack(rows) if rows else np.zeros(shape)


def filled(way: Way, shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """A tensor of floats, with numbers that its type holds: what is too large is its largest."""
    largest = _RANGE[dtype][1]
    numbers = np.asarray(way(shape, dtype, rng), np.float64)
    held = np.where(np.isfinite(numbers), np.clip(numbers, -largest, largest), numbers)
    if dtype == "bfloat16":
        return _in_bfloat16(held)
    return held.astype(dtype)


def whole_numbers(shape: Shape, dtype: str, below: int, rng: np.random.Generator) -> Array:
    """Indices of which many are equal; the first and the last occur often."""
    drawn = rng.integers(0, below, shape)
    return np.where(rng.random(shape) < _SOME, rng.choice([0, below - 1], shape), drawn).astype(
        dtype
    )


def any_whole_numbers(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Small ones, and those at the borders of their type."""
    info = np.iinfo(dtype)
    borders = np.array([info.min, info.min + 1, info.max - 1, info.max], dtype)
    small = rng.integers(0, 8, shape).astype(dtype)
    return np.asarray(np.where(rng.random(shape) < _SOME, rng.choice(borders, shape), small))


def pixels(shape: Shape, dtype: str, rng: np.random.Generator) -> Array:
    """Whole numbers from 0 to 255, as far as the type goes; a channel may be constant."""
    drawn = rng.integers(0, min(256, np.iinfo(dtype).max + 1), shape)
    return (drawn if rng.random() < 1 - _SOME else drawn * 0 + rng.integers(0, 128)).astype(dtype)


def _signs(shape: Shape, rng: np.random.Generator) -> Array:
    return rng.choice([-1.0, 1.0], shape)


def _some(usual: Array, special: Array, rng: np.random.Generator, share: float = _SOME) -> Array:
    return np.where(rng.random(usual.shape) < share, special, usual)


def _in_bfloat16(numbers: Array) -> Array:
    """Cut to the digits of bfloat16, held in float32."""
    narrow = np.ascontiguousarray(numbers, np.float32)
    cut = (narrow.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isfinite(narrow), cut, narrow)
