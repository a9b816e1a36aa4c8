"""A specimen in float64: what the same computation gives without narrow numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.specimen import Specimen
from outvote.dialects.keras.layers import policy_name

_NARROW = ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")


def float64_of(specimen: Specimen, blobs: BlobStore) -> Specimen:
    """The same computation in float64: configurations, weights and inputs are widened."""

    def wide(array: Array) -> Array:
        return array.astype(np.float64) if array.dtype.kind == "f" else array

    layers = []
    for layer in specimen.model.layers:
        weights = tuple(
            replace(w, digest=blobs.put(wide(np.asarray(blobs.get(w.digest)))))
            for w in layer.weights
        )
        layers.append(replace(layer, config=_widened(layer.config), weights=weights))
    inputs = tuple(
        replace(item, dtype="float64") if "float" in item.dtype else item
        for item in specimen.model.inputs
    )
    model = replace(specimen.model, inputs=inputs, layers=tuple(layers))
    return Specimen(model, tuple(wide(array) for array in specimen.inputs))


def _widened(config: Any) -> Any:
    if isinstance(config, Mapping):
        return {
            key: "float64"
            if key == "dtype" and policy_name(value) in _NARROW
            else value
            if key == "dtype"
            else _widened(value)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return [_widened(item) for item in config]
    return config
