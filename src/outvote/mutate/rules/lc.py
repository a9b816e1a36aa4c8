"""Layer copy: inserts a copy of a shape-preserving layer behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.model import REF, Layer, Ref
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, TITLE = "LC", "layer copy"


def sites(subject: Subject, tools: Tools) -> Sequence[Layer]:
    return [
        layer
        for layer in subject.model.layers
        if subject.has_one_input(layer) and subject.keeps_shape(layer)
    ]


def apply(subject: Subject, site: Layer, tools: Tools, rng: np.random.Generator) -> Subject:
    name = subject.unused(site.name)
    renamed = dialect(subject.model.dialect).layers.renamed(site, name)
    copy = replace(renamed, args=_reading(site.args, site.name), shares=None)
    return subject.inserted(Ref(site.name), [copy], {name: subject.specs[site.name]})


def _reading(args: object, producer: str) -> object:
    """The arguments of a layer with one input, with that input exchanged."""
    if isinstance(args, dict):
        if REF in args:
            return {REF: [producer, 0]}
        return {key: _reading(value, producer) for key, value in args.items()}
    if isinstance(args, list | tuple):
        return [_reading(value, producer) for value in args]
    return args
