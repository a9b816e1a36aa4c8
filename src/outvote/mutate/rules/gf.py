"""Gaussian fuzzing: adds noise to the weights of some neurons.

Its deviation is a tenth of that of the weights of all neurons of the layer (LEMON, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.mutate.neurons import neurons_of, pick
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "GF", "lemon"
TITLE = "gaussian fuzzing"
NEEDS = "neurons"
_DEVIATION = 0.1


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    return neurons_of(subject, tools).layers(subject)


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    neurons = neurons_of(subject, tools)
    chosen = pick(neurons.count(site), rng)
    sigma = _DEVIATION * _deviation(neurons.connections(site))

    def noisy(columns: Array) -> Array:
        changed = columns.copy()
        changed[:, chosen] += rng.normal(0, sigma, (len(columns), len(chosen)))
        return changed

    return neurons.changed(subject, site, noisy)


def _deviation(weights: Sequence[Array]) -> float:
    """Of all weights of the layer together; 0 where they are alike, and then there is no mutant."""
    return float(np.concatenate([value.reshape(-1) for value in weights]).std()) if weights else 0.0
