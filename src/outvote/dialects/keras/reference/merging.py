"""Layers that make one tensor of several."""

from __future__ import annotations

from functools import reduce

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.call import Call, NotCovered, tensor, wide


def _tensors(call: Call) -> list[Array]:
    """The tensors of the list that the layer reads: whole numbers of one type, or float64."""
    (listed,) = call.arguments("inputs")
    if not isinstance(listed, list) or not listed:
        raise NotCovered(f"{call.kind} of something else than a list")
    found = [tensor(item) for item in listed]
    kinds = {array.dtype.name for array in found}
    if all(array.dtype.kind in "iu" for array in found) and len(kinds) == 1:
        return found
    if any(array.dtype.kind == "b" for array in found):
        raise NotCovered("truth values")
    return [wide(array) for array in found]


def _alike(call: Call) -> list[Array]:
    """Tensors of one rank; of others Keras does not document how they are laid over each other."""
    found = _tensors(call)
    if len({array.ndim for array in found}) != 1:
        raise NotCovered("tensors of different ranks")
    return found


def _extreme(call: Call) -> list[Array]:
    """NaN where there is one, as in IEEE 754's `maximum` and `minimum`."""
    return [reduce(np.maximum if call.kind == "Maximum" else np.minimum, _alike(call))]


def _average(call: Call) -> list[Array]:
    found = [wide(array) for array in _alike(call)]
    return [reduce(np.add, found) / len(found)]


def _subtract(call: Call) -> list[Array]:
    found = _alike(call)
    if len(found) != 2:
        raise NotCovered("Subtract of other than two")
    return [found[0] - found[1]]


def _dot(call: Call) -> list[Array]:
    """Sums over one axis of each, sample by sample; with `normalize`, of unit vectors."""
    found = [wide(array) for array in _tensors(call)]
    axes = call.get("axes")
    pair = [axes, axes] if isinstance(axes, int) else list(axes)
    if len(found) != 2 or any(array.ndim < 2 for array in found):
        raise NotCovered("Dot of these tensors")
    unit = call.get("normalize", False)
    # The axis that is summed over goes last: then one formula serves every shape.
    x, y = (
        np.moveaxis(_unit(array, axis) if unit else array, axis, -1)
        for array, axis in zip(found, pair, strict=True)
    )
    kept = (*x.shape[1:-1], *y.shape[1:-1])
    flat_x, flat_y = (array.reshape(len(array), -1, array.shape[-1]) for array in (x, y))
    return [np.einsum("bxk,byk->bxy", flat_x, flat_y).reshape(len(x), *(kept or (1,)))]


def _unit(x: Array, axis: int) -> Array:
    length = np.sqrt(np.sum(x * x, axis=axis, keepdims=True))
    if (length < 1e-6).any():
        raise NotCovered("a vector too short to have a direction")
    return np.asarray(x / length)


KINDS = {
    "Add": lambda call: [reduce(np.add, _alike(call))],
    "Average": _average,
    "Concatenate": lambda call: [np.concatenate(_alike(call), axis=call.get("axis", -1))],
    "Dot": _dot,
    "Maximum": _extreme,
    "Minimum": _extreme,
    "Multiply": lambda call: [reduce(np.multiply, _alike(call))],
    "Subtract": _subtract,
}
EXACT = frozenset({"Concatenate", "Maximum", "Minimum"})
