"""Activation function removal: a layer with an activation becomes linear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer
from outvote.dialects.keras.mutate.sites import activated
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "AFRm", "lemon"
TITLE = "activation function removal"


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return activated(subject)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    return subject.with_object(site, config={**site.config, "activation": "linear"})
