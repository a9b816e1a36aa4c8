"""AUDEE's network mutation (section 2.3): other attributes for a node that is there.

Where the node gives another shape or type then, it is led back, so that those behind it still fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.model import Layer, Ref
from outvote.dialects.onnx.mutate.splice import Splice
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject

NAME, GROUP = "NET", "audee"
TITLE = "parameter mutation"
_TRIES = 8
_MOST = 3  # attributes changed at once


def sites(subject: Subject, tools: OnnxTools) -> Sequence[Layer]:
    return [
        layer
        for layer in subject.model.layers
        if subject.is_known(layer)
        and len(subject.specs[layer.name]) == 1
        and tools.parameters(layer)
    ]


def apply(subject: Subject, site: Layer, tools: OnnxTools, rng: np.random.Generator) -> Subject:
    now = tools.parameters(site)
    given = subject.reads(site)
    for _ in range(_TRIES):
        drawn = _drawn(site, now, tools, rng)
        found = tools.varied(site, {**now, **drawn}, given)
        if found is not None and len(found[1]) == 1:
            return _led_back(subject, *found, tools, rng)
    raise Impossible(f"no other attributes for {site.kind}")


def _drawn(
    layer: Layer, now: Mapping[str, Any], tools: OnnxTools, rng: np.random.Generator
) -> dict[str, Any]:
    """New values for a few attributes."""
    names = sorted(now)
    count = int(rng.integers(1, min(_MOST, len(names)) + 1))
    changed = {}
    for name in map(str, rng.choice(names, count, replace=False)):
        values = tools.others(layer, name, now[name])
        changed[name] = values[int(rng.integers(len(values)))]
    return changed


def _led_back(
    subject: Subject,
    layer: Layer,
    outputs: tuple[Spec, ...],
    tools: OnnxTools,
    rng: np.random.Generator,
) -> Subject:
    wanted = subject.specs[layer.name][0]
    layers = tuple(layer if item.name == layer.name else item for item in subject.model.layers)
    model = replace(subject.model, layers=layers)
    changed = replace(subject, model=model, specs={**subject.specs, layer.name: outputs})
    if outputs == (wanted,):
        return changed
    splice = Splice(changed, Ref(layer.name), tools, rng)
    splice.restore(wanted)
    return splice.inserted()
