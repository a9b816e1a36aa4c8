"""Layers that a worker made as a model of their own, brought into another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from outvote.core.model import Layer, Model, Ref, with_refs
from outvote.core.protocol import Form
from outvote.mutate.subject import Spec, Subject


def grafted(
    subject: Subject,
    given: Sequence[Ref],
    model: Model,
    forms: Mapping[str, Sequence[Form]],
    stem: Callable[[Layer], str],
) -> tuple[list[Layer], dict[str, tuple[Spec, ...]], Ref]:
    """The layers under names of their own, reading these tensors as their inputs; their end."""
    places = {item.name: ref for item, ref in zip(model.inputs, given, strict=True)}
    names: dict[str, str] = {}
    specs: dict[str, tuple[Spec, ...]] = {}

    def placed(ref: Ref) -> Ref:
        return places.get(ref.producer) or Ref(names[ref.producer], ref.index)

    layers = []
    for layer in model.layers:
        name = names[layer.name] = _unused(stem(layer), {*subject.specs, *specs})
        args, kwargs = with_refs(layer.args, placed), with_refs(layer.kwargs, placed)
        layers.append(replace(layer, name=name, args=args, kwargs=kwargs))
        specs[name] = tuple(
            Spec(shape, dtype, layer.batch_axis(index))
            for index, (shape, dtype) in enumerate(forms[layer.name])
        )
    return layers, specs, placed(model.outputs[0])


def _unused(stem: str, taken: set[str]) -> str:
    number = 1
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"
