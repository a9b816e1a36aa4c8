"""Neuron activation inverse: flips the sign of a neuron's output before its activation.

Negating all that flows into the neuron, its weights and its bias, does that.
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

NAME, GROUP = "NAI", "lemon"
TITLE = "neuron activation inverse"


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return layers_with_neurons(subject, tools.blobs)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    chosen = pick(neuron_count(site, tools.blobs), rng)

    def negated(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, chosen] *= -1
        return changed

    return with_columns(subject, site, tools.blobs, negated, spare=statistics())
