"""A layer on tensors of its own once more: nothing but numbers is new, in inputs and weights.

Ours, for targets that compile every operation for every shape and type: what a layer was compiled
for is used again, so that other numbers cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core.blobs import BlobStore
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.alone import ending_with, last_layer, other_numbers
from outvote.dialects.keras.mutate.maker import drawn_weight, pooled_weight
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate import extremes
from outvote.mutate.subject import Subject

NAME, GROUP = "REFILL", "values"
TITLE = "layer on tensors of its own, with other numbers in them and in its weights"
OWN_TENSORS = True
_USUAL = 0.3  # of the tensors; the others are from the pool of extremes
_MIXED = 0.3  # of the others: a way of its own for every instance
_OTHER_WEIGHTS = 0.5  # of the layers
_POOLED_WEIGHTS = 0.3  # of those


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return last_layer(subject, tools)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    places = range(len(subject.inputs))
    inputs = [other_numbers(subject, place, _way(rng), rng) for place in places]
    layer = _with_other_weights(site, tools.blobs, rng) if rng.random() < _OTHER_WEIGHTS else site
    return ending_with(subject, layer, subject.specs[site.name], inputs)


def _way(rng: np.random.Generator) -> extremes.Way:
    if rng.random() < _USUAL:
        return extremes.usual
    return extremes.by_instance if rng.random() < _MIXED else extremes.one_of(extremes.WAYS, rng)


def _with_other_weights(layer: Layer, blobs: BlobStore, rng: np.random.Generator) -> Layer:
    """Those that are floats, from the pool now and then."""
    draw = pooled_weight if rng.random() < _POOLED_WEIGHTS else drawn_weight
    weights = []
    for weight in layer.weights:
        old = blobs.get(weight.digest)
        if old.dtype.kind == "f":
            value = draw(weight.name, weight.shape, old.dtype.name, rng)
            weight = replace(weight, digest=blobs.put(value))
        weights.append(weight)
    return replace(layer, weights=tuple(weights))
