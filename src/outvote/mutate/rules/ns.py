"""Neuron switch: exchanges two neurons of a layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.mutate.neurons import neurons_of
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "NS", "lemon"
TITLE = "neuron switch"
NEEDS = "neurons"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    return neurons_of(subject, tools).layers(subject, least=2)


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    neurons = neurons_of(subject, tools)
    a, b = rng.choice(neurons.count(site), size=2, replace=False)

    def switched(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, [a, b]] = columns[:, [b, a]]
        return changed

    return neurons.changed(subject, site, switched, statistics=True)
