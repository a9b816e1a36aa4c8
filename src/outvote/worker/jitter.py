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
    size = np.abs(wide)
    if not np.isfinite(size).all():
        size = np.where(np.isfinite(size), size, 0.0)
    up: Array = wide > 0
    if seed:
        up = np.random.default_rng(seed).integers(0, 2, wide.shape, np.bool_)
    epsilon = _EPSILON[tensor.dtype]
    with np.errstate(invalid="ignore", over="ignore"):
        step = (size + size.mean()) * np.where(up, epsilon, -epsilon) * (wide != 0)
        found = wide + step  # which infinity does not notice
        return tensor.but(np.asarray(found).astype(tensor.array.dtype))
