"""AUDEE's network mutation (section 2.3): other arguments for a call that is there.

Where the call gives another shape or type then, it is led back, so that those behind it still fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.model import Layer, Ref
from outvote.dialects.torch_export.mutate.tools import TorchTools
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "NET", "audee"
TITLE = "parameter mutation"
_TRIES = 12
_MOST = 3  # arguments changed at once


def sites(subject: Subject, tools: TorchTools) -> Sequence[Layer]:
    places = tools.places(subject)
    return [
        layer
        for layer in subject.model.layers
        if subject.is_known(layer) and Ref(layer.name) in places and tools.parameters(layer)
    ]


def apply(subject: Subject, site: Layer, tools: TorchTools, rng: np.random.Generator) -> Subject:
    now = tools.parameters(site)
    for _ in range(_TRIES):
        changed = replace(site, config={**site.config, **_drawn(site, now, tools, rng)})
        found = tools.tried(changed, subject.reads(site))
        if found is None:
            continue
        layer, specs = found
        layers = (layer if item.name == site.name else item for item in subject.model.layers)
        mutant = subject.with_layers(layers, specs={site.name: specs})
        if specs == subject.specs[site.name]:
            return mutant
        wanted = subject.spec(Ref(site.name))
        return tools.with_calls(mutant, Ref(site.name), rng, calls=0, keep=False, wanted=wanted)
    raise Impossible(f"no other arguments for {site.kind}")


def _drawn(
    layer: Layer, now: Mapping[str, Any], tools: TorchTools, rng: np.random.Generator
) -> dict[str, Any]:
    """New values for a few arguments."""
    count = int(rng.integers(1, min(_MOST, len(now)) + 1))
    names = map(str, rng.choice(sorted(now), count, replace=False))
    values = {name: tools.others(layer, name, now[name]) for name in names}
    return {name: known[int(rng.integers(len(known)))] for name, known in values.items()}
