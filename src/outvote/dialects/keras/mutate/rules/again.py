"""A layer on tensors of its own once more: with one other parameter or type, tensor or mask.

Ours, for a layer that was worth it: what is beside it in the space of all layers is tried next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.alone import ending_with, last_layer, other_numbers
from outvote.dialects.keras.mutate.changes import changed_parameters
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.variants import current, variant
from outvote.mutate import extremes
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

NAME, GROUP = "AGAIN", "neighbours"
TITLE = "layer on tensors of its own, changed in one thing"
OWN_TENSORS = True
_TRIES = 6
_PARAMETER = 0.6  # of the changes; the others are to a tensor


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    return last_layer(subject, tools)


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    for _ in range(_TRIES):
        if rng.random() >= _PARAMETER:
            return ending_with(subject, site, subject.specs[site.name], _other_tensor(subject, rng))
        found = _with_other_parameter(subject, site, tools, rng)
        if found is not None:
            return found
    raise Impossible(f"no other parameters for {site.kind}")


def _with_other_parameter(
    subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator
) -> Subject | None:
    kind, given = tools.catalogue.kinds[site.kind], subject.reads(site)
    before = current(kind, site)
    changed = changed_parameters(kind, before, given[0].place, tools, rng, most=1)
    if not changed:
        return None
    found = variant(site, {**before, **changed}, given, tools.maker, rng)
    if found is None:
        return None
    layer, made = found
    return ending_with(subject, layer, made.outputs, subject.inputs)


def _other_tensor(subject: Subject, rng: np.random.Generator) -> tuple[Array, ...]:
    """One of the tensors anew."""
    inputs = list(subject.inputs)
    number = int(rng.integers(len(inputs)))
    way = extremes.WAYS[int(rng.integers(len(extremes.WAYS)))]
    inputs[number] = other_numbers(subject, number, way, rng)
    return tuple(inputs)
