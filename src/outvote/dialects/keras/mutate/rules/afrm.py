"""Activation function removal: a layer with an activation becomes linear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, TITLE = "AFRm", "activation function removal"


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return activated(subject)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    return subject.with_object(site, config={**site.config, "activation": "linear"})


def activated(subject: Subject) -> list[Layer]:
    """The first call of every layer object that has an activation other than the linear one."""
    return [
        layer
        for layer in subject.model.layers
        if layer.shares is None and layer.config.get("activation") not in (None, "linear")
    ]
