"""Weights as layers of Keras make them: what is so need not be set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer, Weight

_FILLS = {"zeros": 0.0, "ones": 1.0}


def initial_value(layer: Layer, weight: Weight, now: Array) -> Array | None:
    """What a layer fills a weight with when it is made: zeros or ones; None for anything else."""
    if layer.config.get("unit_forget_bias"):  # some of its zeros are ones
        return None
    spec = layer.config.get(f"{weight.name}_initializer")
    name = spec.get("class_name") if isinstance(spec, Mapping) else spec
    fill = _FILLS.get(str(name).lower())
    return None if fill is None else np.full(now.shape, fill, now.dtype)


def are_as_made(layer: Layer, arrays: Sequence[Array]) -> bool:
    """Whether all weights of a layer are such, so that nobody need set them."""
    pairs = zip(layer.weights, arrays, strict=True)
    made = [(array, initial_value(layer, weight, array)) for weight, array in pairs]
    return all(value is not None and np.array_equal(array, value) for array, value in made)
