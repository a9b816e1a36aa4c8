"""What float64 makes of any specimen: its inputs and weights; the dialect widens the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Layer
from outvote.core.specimen import Specimen


def widened(specimen: Specimen, blobs: BlobStore, told_wide: Callable[[Layer], Layer]) -> Specimen:
    """The same computation in float64; `told_wide` is for the types that layers ask for."""

    def with_wide_weights(layer: Layer) -> Layer:
        weights = (
            replace(w, digest=blobs.put(_wide(np.asarray(blobs.get(w.digest)))))
            for w in layer.weights
        )
        return replace(layer, weights=tuple(weights))

    inputs = tuple(
        replace(item, dtype="float64") if "float" in item.dtype else item
        for item in specimen.model.inputs
    )
    layers = tuple(told_wide(with_wide_weights(layer)) for layer in specimen.model.layers)
    model = replace(specimen.model, inputs=inputs, layers=layers)
    return Specimen(model, tuple(map(_wide, specimen.inputs)))


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array
