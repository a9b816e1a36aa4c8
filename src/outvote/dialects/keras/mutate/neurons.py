"""Neurons of a layer: columns of its weights. What LEMON's inner-layer rules act on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Layer, Weight
from outvote.mutate.subject import Subject

SHARE = 0.3  # of a layer's neurons that GF, WS, NAI and NEB act on (LEMON, section 4.4)
_STATISTICS = ("moving_mean", "moving_variance", "mean", "variance")
_DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D")


def layers_with_neurons(subject: Subject, blobs: BlobStore, least: int = 1) -> list[Layer]:
    """The first call of every layer object that has at least so many neurons."""
    return [
        layer
        for layer in subject.model.layers
        if layer.shares is None and neuron_count(layer, blobs) >= least
    ]


def neuron_count(layer: Layer, blobs: BlobStore) -> int:
    """Columns of the largest weight; 0 for a layer without float weights."""
    largest = max(
        (w for w in layer.weights if is_float(w, blobs)),
        key=lambda w: math.prod(w.shape),
        default=None,
    )
    return _width(layer, largest) if largest else 0


def is_float(weight: Weight, blobs: BlobStore) -> bool:
    return bool(weight.shape) and _kind(weight.digest, blobs) == "f"


@lru_cache(maxsize=1 << 16)  # the same weights are asked about for every mutant
def _kind(digest: str, blobs: BlobStore) -> str:
    return blobs.get(digest).dtype.kind


def pick(count: int, rng: np.random.Generator) -> Array:
    """The neurons a rule acts on: 30 % of them, at least one."""
    return rng.choice(count, size=max(1, round(SHARE * count)), replace=False)


def with_columns(
    subject: Subject,
    layer: Layer,
    blobs: BlobStore,
    change: Callable[[Array], Array],
    spare: Sequence[str] = (),
) -> Subject:
    """Every float weight of the layer that has one column per neuron, changed as a matrix."""
    count = neuron_count(layer, blobs)
    weights = []
    for weight in layer.weights:
        if not is_float(weight, blobs) or _width(layer, weight) != count or weight.name in spare:
            weights.append(weight)
            continue
        value = np.array(blobs.get(weight.digest))
        changed = change(value.reshape(-1, count)).reshape(value.shape).astype(value.dtype)
        weights.append(replace(weight, digest=blobs.put(changed)))
    return subject.with_object(layer, weights=tuple(weights))


def statistics() -> tuple[str, ...]:
    """Names of weights that are no connections: running means and variances."""
    return _STATISTICS


def _width(layer: Layer, weight: Weight) -> int:
    """How many neurons a weight holds a column of; depthwise kernels have two axes of them."""
    if layer.kind in _DEPTHWISE and len(weight.shape) > 2:
        return weight.shape[-1] * weight.shape[-2]
    return weight.shape[-1]
