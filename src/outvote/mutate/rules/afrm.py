"""Activation function removal: a layer that is an activation goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.model import Layer
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "AFRm", "lemon"
TITLE = "activation function removal"
NEEDS = "activations"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    if len(subject.model.layers) < 2:
        return []
    return dialect(subject.model.dialect).activations.activations_of(subject)


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    return subject.without(site)
