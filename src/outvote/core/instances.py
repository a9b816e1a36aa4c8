"""Instances of a tensor: what lies along its batch axis. A tensor without one is shared by all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array


def count_of(arrays: Sequence[Array], axes: Sequence[int | None]) -> int:
    """How many instances the tensors of one batch hold; 1 where none has a batch axis."""
    pairs = zip(arrays, axes, strict=True)
    return next((array.shape[axis] for array, axis in pairs if axis is not None), 1)


def taken(array: Array, axis: int | None, indices: Sequence[int] | slice) -> Array:
    """The tensor of these instances."""
    if axis is None:
        return array
    chosen = indices if isinstance(indices, slice) else np.array(indices, dtype=np.intp)
    return np.ascontiguousarray(array[(*[slice(None)] * axis, chosen)])


def announced(array: Array, axis: int | None) -> tuple[int | None, ...]:
    """The shape of a tensor with any number of instances."""
    return tuple(None if place == axis else size for place, size in enumerate(array.shape))


def by_instance(array: Array, axis: int | None) -> Array:
    """The tensor with its instances along the first axis; a shared one is a single instance."""
    if axis is None:
        return array[None]
    return np.moveaxis(array, axis, 0) if axis else array
