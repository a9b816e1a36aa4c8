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
from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.values import Draw
from outvote.dialects.keras.mutate.variants import can_vary, current, same, variant
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "NET", "audee"
TITLE = "parameter mutation"
_TRIES = 12
_MOST = 3  # parameters changed at once
_CORNERS = 0.5
_OF_THE_DATA = ("input_dim", "num_tokens", "vocabulary")  # other values would not fit the inputs


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
        drawn = _drawn(kind, before, given[0].place, tools, rng)
        found = variant(site, {**before, **drawn}, given, tools.maker, rng) if drawn else None
        if found is not None and len(found[1].outputs) == 1:
            return _led_back(subject, found[0], found[1].outputs, tools, rng)
    raise Impossible(f"no other parameters for {site.kind}")


def _drawn(
    kind: Kind,
    before: dict[str, Any],
    place: Sequence[int | None],
    tools: KerasTools,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """New values for a few parameters."""
    own = [name for name in kind.parameters if name not in _OF_THE_DATA]
    names = [*own, *(["dtype"] if "dtype" in before else [])]
    if not names:
        return {}
    count = int(rng.integers(1, min(_MOST, len(names)) + 1))
    draw = Draw(kind.name, tuple(place), rng, tools.catalogue.activations, False, dict(before))
    changed: dict[str, Any] = {}
    for name in rng.choice(names, count, replace=False):
        row = parameter(kind.name, str(name))
        if row is None:
            continue
        corner = row.corners and draw.chance(_CORNERS)
        value = draw.one_of(*row.corners) if corner else row.draw(draw)
        if not same(value, before.get(str(name))):
            changed[str(name)] = value
    return changed


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
