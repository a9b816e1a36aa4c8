"""A specimen in float64: what the same computation gives without narrow numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from outvote.core.blobs import BlobStore
from outvote.core.model import Json, Layer
from outvote.core.specimen import Specimen
from outvote.dialects.onnx.nouns.node import TYPE, WEIGHT
from outvote.dialects.onnx.nouns.types import CODES
from outvote.triage.float64 import widened

_NARROW = tuple(name for name in CODES if "float" in name and name != "float64")
# Attributes that name a type: what a node turns numbers into.
_TYPED = ("to", "dtype", "output_dtype", "softmax_precision")


def float64_of(specimen: Specimen, blobs: BlobStore) -> Specimen:
    """The same computation in float64: inputs, constants and types that nodes ask for."""
    return widened(specimen, blobs, _wide_layer)


def _wide_layer(layer: Layer) -> Layer:
    config = {key: _wide_attribute(key, value) for key, value in layer.config.items()}
    return replace(layer, config=config, args=_told_wide(layer.args))


def _wide_attribute(key: str, value: Json) -> Json:
    if key in _TYPED and value in [CODES[name] for name in _NARROW]:
        return CODES["float64"]
    return _told_wide(value)


def _told_wide(told: Json) -> Json:
    """Mentions of narrow floats, at any depth, told as float64."""
    if isinstance(told, Mapping):
        if WEIGHT in told:
            narrow = told.get("type") in _NARROW
            return {WEIGHT: told[WEIGHT]} if narrow else dict(told)
        if TYPE in told and "name" not in told:
            return told
        return {
            name: "float64" if name == "type" and value in _NARROW else _wide_attribute(name, value)
            for name, value in told.items()
        }
    if isinstance(told, list | tuple):
        return [_told_wide(item) for item in told]
    return told
