"""Neuron switch: exchanges two neurons of a layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.neurons import layers_with_neurons, neuron_count, with_columns
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "NS", "lemon"
TITLE = "neuron switch"


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return layers_with_neurons(subject, tools.blobs, least=2)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    a, b = rng.choice(neuron_count(site, tools.blobs), size=2, replace=False)

    def switched(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, [a, b]] = columns[:, [b, a]]
        return changed

    return with_columns(subject, site, tools.blobs, switched)
