"""Layer removal: takes out a layer whose input and output shapes are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "LR", "lemon"
TITLE = "layer removal"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    if len(subject.model.layers) < 2:
        return []
    return [layer for layer in subject.model.layers if subject.keeps_shape(layer)]


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    return subject.without(site)
