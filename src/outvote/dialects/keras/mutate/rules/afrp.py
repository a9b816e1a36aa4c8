"""Activation function replacement: another activation, drawn from all there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.model import Layer
from outvote.dialects.keras.mutate.sites import activated
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "AFRp", "lemon"
TITLE = "activation function replacement"
_OTHER_SHAPE = ("glu",)


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return activated(subject)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    old = site.config["activation"]
    others = [a for a in tools.catalogue.activations if a != old and a not in _OTHER_SHAPE]
    new = others[int(rng.integers(len(others)))]
    return subject.with_object(site, config={**site.config, "activation": new})
