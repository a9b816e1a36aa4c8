"""Layer switch: exchanges two layers with the same input shape and the same output shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.model import Layer
from outvote.mutate.subject import Spec, Subject, reading
from outvote.mutate.tools import Tools

NAME, GROUP = "LS", "lemon"
TITLE = "layer switch"
Pair = tuple[Layer, Layer]


def sites(subject: Subject, tools: Tools) -> Sequence[Pair]:
    alike: dict[tuple[Spec, tuple[Spec, ...]], list[Layer]] = {}
    for layer in subject.model.layers:
        alone = len(subject.calls_of(layer)) == 1
        if alone and subject.has_one_input(layer) and subject.is_known(layer):
            key = (subject.reads(layer)[0], subject.specs[layer.name])
            alike.setdefault(key, []).append(layer)
    return [
        (a, b)
        for group in alike.values()
        for a, b in combinations(group, 2)
        if a.object_digest != b.object_digest
    ]


def apply(subject: Subject, site: Pair, tools: Tools, rng: np.random.Generator) -> Subject:
    a, b = site
    renamed = dialect(subject.model.dialect).layers.renamed
    swapped = {
        a.name: _reading(renamed(b, a.name), a),
        b.name: _reading(renamed(a, b.name), b),
    }
    return subject.with_layers(swapped.get(x.name, x) for x in subject.model.layers)


def _reading(layer: Layer, other: Layer) -> Layer:
    """A layer that reads what another one does, in its own way: arguments may hold constants."""
    (source,) = other.refs()
    return reading(layer, source)
