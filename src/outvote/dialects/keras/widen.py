"""A specimen in float64: what the same computation gives without narrow numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outvote.core.blobs import BlobStore
from outvote.core.specimen import Specimen
from outvote.dialects.keras.layers import policy_name
from outvote.triage.float64 import widened

_NARROW = ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")


def float64_of(specimen: Specimen, blobs: BlobStore) -> Specimen:
    """The same computation in float64: configurations, weights and inputs are widened."""
    return widened(specimen, blobs, lambda layer: replace(layer, config=_wide(layer.config)))


def _wide(config: Any) -> Any:
    if isinstance(config, Mapping):
        return {
            key: "float64"
            if key == "dtype" and policy_name(value) in _NARROW
            else value
            if key == "dtype"
            else _wide(value)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return [_wide(item) for item in config]
    return config
