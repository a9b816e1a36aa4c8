"""Neuron activation inverse: flips the sign of a neuron's output before its activation.

Negating all that flows into the neuron, its weights and its bias, does that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.mutate.neurons import neurons_of, pick
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "NAI", "lemon"
TITLE = "neuron activation inverse"
NEEDS = "neurons"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    return neurons_of(subject, tools).layers(subject)


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    neurons = neurons_of(subject, tools)
    chosen = pick(neurons.count(site), rng)

    def negated(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, chosen] *= -1
        return changed

    return neurons.changed(subject, site, negated)
