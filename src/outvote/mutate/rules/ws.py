"""Weight shuffling: permutes the incoming weights of each chosen neuron."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.mutate.neurons import neurons_of, pick
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "WS", "lemon"
TITLE = "weight shuffling"
NEEDS = "neurons"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    neurons = neurons_of(subject, tools)
    return [layer for layer in neurons.layers(subject) if neurons.incoming(layer) > 1]


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    neurons = neurons_of(subject, tools)
    chosen = pick(neurons.count(site), rng)

    def shuffled(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, chosen] = rng.permuted(columns[:, chosen], axis=0)
        return changed

    return neurons.changed(subject, site, shuffled)
