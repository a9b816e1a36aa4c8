"""Gaussian fuzzing: adds noise to the weights of some neurons.

Its deviation is a tenth of the deviation of the layer's weights (LEMON, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.neurons import (
    layers_with_neurons,
    neuron_count,
    pick,
    statistics,
    with_columns,
)
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, TITLE = "GF", "gaussian fuzzing"
_DEVIATION = 0.1


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return layers_with_neurons(subject, tools.blobs)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    chosen = pick(neuron_count(site, tools.blobs), rng)

    def noisy(columns: Array) -> Array:
        changed = columns.copy()
        sigma = _DEVIATION * float(columns.std()) or _DEVIATION
        changed[:, chosen] += rng.normal(0, sigma, (len(columns), len(chosen)))
        return changed

    return with_columns(subject, site, tools.blobs, noisy, spare=statistics())
