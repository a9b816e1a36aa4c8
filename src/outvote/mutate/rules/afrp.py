"""Activation function replacement: another activation, drawn from all there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.model import Layer
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "AFRp", "lemon"
TITLE = "activation function replacement"
NEEDS = "activations"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    return dialect(subject.model.dialect).activations.activations_of(subject)


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    others = dialect(subject.model.dialect).activations.others(subject, site, tools)
    if not others:
        raise Impossible(f"no other activation in the place of {site.kind}")
    new = others[int(rng.integers(len(others)))]
    return subject.with_layers(new if x.name == site.name else x for x in subject.model.layers)
