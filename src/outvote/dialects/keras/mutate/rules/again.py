"""A layer on tensors of its own once more: with one other parameter or type, tensor or mask.

Ours, for a layer that was worth it: what is beside it in the space of all layers is tried next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer, Ref
from outvote.dialects.keras.mutate.changes import changed_parameters
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.variants import can_vary, current, variant
from outvote.mutate import extremes
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject

NAME, GROUP = "AGAIN", "neighbours"
TITLE = "layer on tensors of its own, changed in one thing"
OWN_TENSORS = True
_TRIES = 6
_PARAMETER = 0.6  # of the changes; the others are to a tensor


def sites(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    """The layer that gives the output, where the model is one that a rule drew with its tensors."""
    if not subject.inputs:
        return []
    last = subject.model.layer(subject.model.outputs[0].producer)
    return [last] if can_vary(tools.catalogue, last) else []


def apply(subject: Subject, site: Layer, tools: KerasTools, rng: np.random.Generator) -> Subject:
    for _ in range(_TRIES):
        if rng.random() >= _PARAMETER:
            return _ending_with(
                subject, site, subject.specs[site.name], _other_tensor(subject, rng)
            )
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
    return _ending_with(subject, layer, made.outputs, subject.inputs)


def _other_tensor(subject: Subject, rng: np.random.Generator) -> tuple[Array, ...]:
    """One of the tensors anew; where a Masking layer reads it, with other steps to hide."""
    inputs = list(subject.inputs)
    number = int(rng.integers(len(inputs)))
    item, old = subject.model.inputs[number], inputs[number]
    if "float" not in item.dtype:
        inputs[number] = rng.permutation(old.ravel()).reshape(old.shape)
        return tuple(inputs)
    way = extremes.WAYS[int(rng.integers(len(extremes.WAYS)))]
    new = extremes.filled(way, old.shape, item.dtype, rng)
    if any(layer.kind == "Masking" for layer in subject.readers(item.name)):
        hidden = rng.random(old.shape[:2]) < rng.random()
        new = np.where(hidden[..., None], np.zeros((), new.dtype), new)
    inputs[number] = new
    return tuple(inputs)


def _ending_with(
    subject: Subject, last: Layer, specs: Sequence[Spec], inputs: Sequence[Array]
) -> Subject:
    """The same model with another last layer, under a name of its own: it is a new one."""
    name = subject.unused(last.kind.lower())
    layer = replace(last, name=name, config={**last.config, "name": name})
    kept = [one for one in subject.model.layers if one.name != last.name]
    changed = subject.with_layers([*kept, layer], [Ref(name)], {name: tuple(specs)})
    return changed.fed(inputs)
