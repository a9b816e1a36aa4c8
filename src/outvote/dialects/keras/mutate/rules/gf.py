"""Gaussian fuzzing: adds noise to the weights of some neurons.

Its deviation is a tenth of that of the weights of all neurons of the layer (LEMON, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.neurons import (
    is_float,
    layers_with_neurons,
    neuron_count,
    pick,
    statistics,
    with_columns,
)
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "GF", "lemon"
TITLE = "gaussian fuzzing"
_DEVIATION = 0.1


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return layers_with_neurons(subject, tools.blobs)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    chosen = pick(neuron_count(site, tools.blobs), rng)
    sigma = _DEVIATION * _deviation(site, tools)

    def noisy(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, chosen] += rng.normal(0, sigma, (len(columns), len(chosen)))
        return changed

    return with_columns(subject, site, tools.blobs, noisy, spare=statistics())


def _deviation(layer: Layer, tools: KerasTools) -> float:
    """Of all weights of the layer together; 0 where they are alike, and then there is no mutant."""
    values = [
        np.asarray(tools.blobs.get(weight.digest), np.float64).reshape(-1)
        for weight in layer.weights
        if is_float(weight, tools.blobs) and weight.name not in statistics()
    ]
    return float(np.concatenate(values).std()) if values else 0.0
