"""Tensors moved by their last place: what rounding alone could do to them."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.states import State

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def moved(tensor: State, seed: int) -> State:
    """A tensor moved by about one unit in the last place, up or down at random.

    Seed 0 moves all away from zero: in a chain of single numbers, random moves may cancel. The
    step is relative to the element and to the mean size of the tensor: a sum of many terms that
    cancel is rounded relative to its terms. Exact zeros stay.
    """
    if tensor.dtype not in _EPSILON or not tensor.array.size:
        return tensor
    wide = tensor.array.astype(np.float64)
    signs: Array = np.sign(wide)
    if seed:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=wide.shape)
    finite = np.isfinite(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.where(finite, np.abs(wide), 0.0)
        step = _EPSILON[tensor.dtype] * (size + size.mean()) * signs
        found = np.where(finite & (wide != 0), wide + step, wide)
        return tensor.but(found.astype(tensor.array.dtype))
