"""A specimen in float64: what the same computation gives without narrow numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Json, Layer
from outvote.core.specimen import Specimen
from outvote.dialects.torch_export.nouns.node import DTYPE, FLOATS, WEIGHT

_WIDE = "float64"


def float64_of(specimen: Specimen, blobs: BlobStore) -> Specimen:
    """The same computation in float64: inputs, constants and types that calls ask for."""
    inputs = tuple(
        replace(item, dtype=_WIDE) if item.dtype in FLOATS else item
        for item in specimen.model.inputs
    )
    layers = tuple(_wide_layer(layer, blobs) for layer in specimen.model.layers)
    model = replace(specimen.model, inputs=inputs, layers=layers)
    return Specimen(model, tuple(map(_wide, specimen.inputs)))


def _wide_layer(layer: Layer, blobs: BlobStore) -> Layer:
    weights = tuple(
        replace(w, digest=blobs.put(_wide(np.asarray(blobs.get(w.digest))))) for w in layer.weights
    )
    return replace(
        layer, weights=weights, config=_told_wide(layer.config), kwargs=_told_wide(layer.kwargs)
    )


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _told_wide(told: Json) -> Json:
    """Mentions of narrow floats, at any depth, told as float64."""
    if isinstance(told, Mapping):
        if WEIGHT in told:
            return {WEIGHT: told[WEIGHT]}
        if told.get(DTYPE) in FLOATS:
            return {DTYPE: _WIDE}
        return {name: _told_wide(value) for name, value in told.items()}
    return [_told_wide(item) for item in told] if isinstance(told, list | tuple) else told
