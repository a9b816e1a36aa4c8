"""Layer copy: inserts a copy of a shape-preserving layer behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.model import Layer, Ref
from outvote.mutate.subject import Subject, reading
from outvote.mutate.tools import Tools

NAME, GROUP = "LC", "lemon"
TITLE = "layer copy"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    return [
        layer
        for layer in subject.model.layers
        if subject.has_one_input(layer) and subject.keeps_shape(layer)
    ]


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    name = subject.unused(site.name)
    renamed = dialect(subject.model.dialect).layers.renamed(site, name)
    copy = replace(reading(renamed, Ref(site.name)), shares=None)
    return subject.inserted(Ref(site.name), [copy], {name: subject.specs[site.name]})
