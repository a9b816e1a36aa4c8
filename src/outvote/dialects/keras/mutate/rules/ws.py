"""Weight shuffling: permutes the incoming weights of each chosen neuron."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.neurons import (
    incoming_count,
    layers_with_neurons,
    neuron_count,
    pick,
    statistics,
    with_columns,
)
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "WS", "lemon"
TITLE = "weight shuffling"


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return [
        layer
        for layer in layers_with_neurons(subject, tools.blobs)
        if incoming_count(layer, tools.blobs) > 1
    ]


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    chosen = pick(neuron_count(site, tools.blobs), rng)

    def shuffled(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, chosen] = rng.permuted(columns[:, chosen], axis=0)
        return changed

    return with_columns(subject, site, tools.blobs, shuffled, spare=statistics())
