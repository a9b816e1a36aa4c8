"""Neurons of a layer: columns of its weights. What LEMON's inner-layer rules act on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
    """Columns of the largest weight that has some; 0 for a layer without float weights."""
    numbered = [w for w in layer.weights if is_float(w, blobs) and _width(layer, w)]
    largest = max(numbered, key=lambda w: math.prod(w.shape), default=None)
    return _width(layer, largest) if largest else 0


def incoming_count(layer: Layer, blobs: BlobStore) -> int:
    """How many weights lead into one neuron, in the weight that has most of them."""
    count = neuron_count(layer, blobs)
    return max((math.prod(w.shape) // count for w in _columned(layer, blobs, count)), default=0)


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
    columned = [w for w in _columned(layer, blobs, count) if w.name not in spare]
    weights = []
    for weight in layer.weights:
        if weight in columned:
            value = np.array(blobs.get(weight.digest))
            changed = _as_columns(layer, weight, value, count, change).astype(value.dtype)
            weight = replace(weight, digest=blobs.put(changed))
        weights.append(weight)
    return subject.with_object(layer, weights=tuple(weights))


def statistics() -> tuple[str, ...]:
    """Names of weights that are no connections: running means and variances."""
    return _STATISTICS


def _columned(layer: Layer, blobs: BlobStore, count: int) -> list[Weight]:
    """The float weights that have one column per neuron."""
    return [w for w in layer.weights if is_float(w, blobs) and _width(layer, w) == count]


def _as_columns(
    layer: Layer, weight: Weight, value: Array, count: int, change: Callable[[Array], Array]
) -> Array:
    """The weight with its neurons' columns changed, in its own shape again."""
    axes = _neuron_axes(layer, weight)
    last = tuple(range(-len(axes), 0))
    turned = np.moveaxis(value, axes, last)
    changed = change(turned.reshape(-1, count)).reshape(turned.shape)
    return np.ascontiguousarray(np.moveaxis(changed, last, axes))


def _width(layer: Layer, weight: Weight) -> int:
    """How many neurons a weight holds a column of."""
    axes = _neuron_axes(layer, weight)
    return math.prod(weight.shape[axis] for axis in axes) if axes else 0


def _neuron_axes(layer: Layer, weight: Weight) -> tuple[int, ...]:
    """The axes of a weight that number the neurons of its layer; none: it feeds no neuron alone.

    Transposed convolutions keep their outputs before their inputs, depthwise ones multiply each
    input, and separable ones have neurons behind their second kernel only.
    """
    kind = _computing_kind(layer)
    is_kernel = len(weight.shape) > 2
    if kind.endswith("Transpose") and is_kernel:
        return (-2,)
    if kind in _DEPTHWISE and is_kernel:
        return (-2, -1)
    if kind.startswith("SeparableConv") and weight.name == "depthwise_kernel":
        return ()
    return (-1,)


def _computing_kind(layer: Layer) -> str:
    """The kind of the layer, or of the one that it wraps."""
    kind, config = layer.kind, layer.config
    while isinstance(inner := config.get("layer"), Mapping) and isinstance(
        inner.get("config"), Mapping
    ):
        kind, config = str(inner.get("class_name")), inner["config"]
    return kind
