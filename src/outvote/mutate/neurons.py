"""Neurons of a layer: columns of its weights. What LEMON's inner-layer rules act on.

Which axes of a weight number neurons, a dialect says in its part `neurons`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect
from outvote.core.model import Layer, Weight
from outvote.core.parts import NeuronPlaces
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

SHARE = 0.3  # of a layer's neurons that GF, WS, NAI and NEB act on (LEMON, section 4.4)


def neurons_of(subject: Subject, tools: Tools) -> Neurons:
    """The neurons of a model, as its dialect knows them."""
    return Neurons(dialect(subject.model.dialect).neurons, tools.blobs)


@dataclass(frozen=True)
class Neurons:
    """Where neurons are, and how their weights are changed."""

    places: NeuronPlaces
    blobs: BlobStore

    def layers(self, subject: Subject, least: int = 1) -> list[Layer]:
        """The first call of every layer object that has at least so many neurons."""
        return [
            layer
            for layer in subject.model.layers
            if layer.shares is None and self.count(layer) >= least
        ]

    def count(self, layer: Layer) -> int:
        """Columns of the largest weight that has some; 0 for a layer without float weights."""
        numbered = [w for w in layer.weights if self._width(layer, w) and self._is_float(w)]
        largest = max(numbered, key=lambda w: math.prod(w.shape), default=None)
        return self._width(layer, largest) if largest else 0

    def incoming(self, layer: Layer) -> int:
        """How many weights lead into one neuron, in the weight that has most of them."""
        count = self.count(layer)
        return max((math.prod(w.shape) // count for w in self._columned(layer, count)), default=0)

    def connections(self, layer: Layer) -> list[Array]:
        """The float weights that are no statistics."""
        return [
            np.asarray(self.blobs.get(weight.digest), np.float64)
            for weight in layer.weights
            if self._is_float(weight) and not self.places.is_statistic(layer, weight)
        ]

    def changed(
        self,
        subject: Subject,
        layer: Layer,
        change: Callable[[Array], Array],
        statistics: bool = False,
    ) -> Subject:
        """Every float weight of the layer that has one column per neuron, changed as a matrix.

        Statistics, running means and variances, are no connections: they stay, unless asked for.
        """
        count = self.count(layer)
        columned = [
            w
            for w in self._columned(layer, count)
            if statistics or not self.places.is_statistic(layer, w)
        ]
        weights = []
        for weight in layer.weights:
            if weight in columned:
                value = np.array(self.blobs.get(weight.digest))
                axes = self.places.neuron_axes(layer, weight)
                turned = _as_columns(value, axes, count, change).astype(value.dtype)
                weight = replace(weight, digest=self.blobs.put(turned))
            weights.append(weight)
        return subject.with_object(layer, weights=tuple(weights))

    def _columned(self, layer: Layer, count: int) -> list[Weight]:
        """The float weights that have one column per neuron."""
        return [w for w in layer.weights if self._width(layer, w) == count and self._is_float(w)]

    def _width(self, layer: Layer, weight: Weight) -> int:
        """How many neurons a weight holds a column of."""
        axes = self.places.neuron_axes(layer, weight) if weight.shape else ()
        return math.prod(weight.shape[axis] for axis in axes) if axes else 0

    def _is_float(self, weight: Weight) -> bool:
        return bool(weight.shape) and _kind(weight.digest, self.blobs) == "f"


def pick(count: int, rng: np.random.Generator) -> Array:
    """The neurons a rule acts on: 30 % of them, at least one."""
    return rng.choice(count, size=max(1, round(SHARE * count)), replace=False)


@lru_cache(maxsize=1 << 16)  # the same weights are asked about for every mutant
def _kind(digest: str, blobs: BlobStore) -> str:
    return blobs.get(digest).dtype.kind


def _as_columns(
    value: Array, axes: Sequence[int], count: int, change: Callable[[Array], Array]
) -> Array:
    """A weight with its neurons' columns changed, in its own shape again."""
    last = tuple(range(-len(axes), 0))
    turned = np.moveaxis(value, axes, last)
    changed = change(turned.reshape(-1, count)).reshape(turned.shape)
    return np.ascontiguousarray(np.moveaxis(changed, last, axes))
