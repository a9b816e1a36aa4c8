"""AUDEE's network mutation (section 2.3): other parameter values for a layer that is there.

About half of the changes are usual values, the others corners. Where the layer gives another shape
then, it is led back, so that the layers behind it still fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.model import Layer, Ref
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.changes import changed_parameters
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.variants import can_vary, current, variant
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "NET", "audee"
TITLE = "parameter mutation"
_TRIES = 12
_MOST = 3  # parameters changed at once


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return [
        layer
        for layer in subject.model.layers
        if can_vary(tools.catalogue, layer)
        and current(tools.catalogue.kinds[layer.kind], layer)
        and len(subject.calls_of(layer)) == 1
        and len(subject.specs[layer.name]) == 1
        and all(n is not None for n in subject.specs[layer.name][0].place)
    ]


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    kind = tools.catalogue.kinds[site.kind]
    before = current(kind, site)
    given = subject.reads(site)
    for _ in range(_TRIES):
        drawn = changed_parameters(kind, before, given[0].place, tools, rng, _MOST)
        found = variant(site, {**before, **drawn}, given, tools.maker, rng) if drawn else None
        if found is not None and len(found[1].outputs) == 1:
            return _led_back(subject, found[0], found[1].outputs, tools, rng)
    raise Impossible(f"no other parameters for {site.kind}")


def _led_back(
    subject: Subject, layer: Layer, outputs: Any, tools: KerasTools, rng: np.random.Generator
) -> Subject:
    wanted = subject.specs[layer.name][0]
    layers = [layer if item.name == layer.name else item for item in subject.model.layers]
    model = replace(subject.model, layers=tuple(layers))
    changed = replace(subject, model=model, specs={**subject.specs, layer.name: tuple(outputs)})
    if outputs == (wanted,):
        return changed
    chain = Chain(changed, Ref(layer.name), tools, rng)
    chain.restore(wanted)
    return chain.inserted()
