"""A model of a layer on tensors of its own, with other numbers or another last layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer, Ref
from outvote.dialects.keras.mutate.masks import drawn_mask
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.variants import can_vary
from outvote.mutate import extremes
from outvote.mutate.subject import Spec, Subject


def last_layer(subject: Subject, tools: KerasTools) -> Sequence[Layer]:
    """The layer that gives the output, where the model is one that a rule drew with its tensors."""
    if not subject.inputs:
        return []
    last = subject.model.layer(subject.model.outputs[0].producer)
    return [last] if can_vary(tools.catalogue, last) else []


def other_numbers(
    subject: Subject, number: int, way: extremes.Way, rng: np.random.Generator
) -> Array:
    """The input of that number anew; where a Masking layer reads it, with other steps to hide."""
    item, old = subject.model.inputs[number], subject.inputs[number]
    if item.dtype == "bool" and old.ndim > 1 and old.shape[-1]:
        return drawn_mask(old.shape, rng)
    if "float" not in item.dtype:
        shuffled: Array = rng.permutation(old.ravel()).reshape(old.shape)
        return shuffled
    new = extremes.filled(way, old.shape, item.dtype, rng)
    if any(layer.kind == "Masking" for layer in subject.readers(item.name)):
        hidden = ~drawn_mask(old.shape[:2], rng)
        new = np.where(hidden[..., None], np.zeros((), new.dtype), new)
    return new


def ending_with(
    subject: Subject, last: Layer, specs: Sequence[Spec], inputs: Sequence[Array]
) -> Subject:
    """The same model with another last layer, under a name of its own: it is a new one."""
    name = subject.unused(last.kind.lower())
    layer = replace(last, name=name, config={**last.config, "name": name})
    before = subject.model.outputs[0].producer
    kept = [one for one in subject.model.layers if one.name != before]
    changed = subject.with_layers([*kept, layer], [Ref(name)], {name: tuple(specs)})
    return changed.fed(inputs)
