"""A specimen in float64: what the same computation gives without narrow numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from outvote.core.blobs import BlobStore
from outvote.core.model import Json, Layer
from outvote.core.specimen import Specimen
from outvote.dialects.torch_export.nouns.node import DTYPE, FLOATS, WEIGHT
from outvote.triage.float64 import widened

_WIDE = "float64"


def float64_of(specimen: Specimen, blobs: BlobStore) -> Specimen:
    """The same computation in float64: inputs, constants and types that calls ask for."""
    return widened(specimen, blobs, _wide_layer)


def _wide_layer(layer: Layer) -> Layer:
    return replace(layer, config=_told_wide(layer.config), kwargs=_told_wide(layer.kwargs))


def _told_wide(told: Json) -> Json:
    """Mentions of narrow floats, at any depth, told as float64."""
    if isinstance(told, Mapping):
        if WEIGHT in told:
            return {WEIGHT: told[WEIGHT]}
        if told.get(DTYPE) in FLOATS:
            return {DTYPE: _WIDE}
        return {name: _told_wide(value) for name, value in told.items()}
    return [_told_wide(item) for item in told] if isinstance(told, list | tuple) else told
