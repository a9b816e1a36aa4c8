"""Parts of a model as models of their own: a layer with what it read, all up to a tensor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.instances import announced
from outvote.core.model import REF, Input, Layer, Model, Ref, with_refs
from outvote.core.states import State


def one_layer(spoken: str, layer: Layer, given: Sequence[State]) -> tuple[Model, list[Array]]:
    """A model of this layer alone, in the dialect that is spoken; a mask becomes an input."""
    arrays = [state.array for state in given]
    inputs = []
    for place, state in enumerate(given):
        shape = announced(state.array, state.batch)
        inputs.append(Input(f"x{place}", shape, state.dtype, state.batch))
    numbers = iter(range(len(arrays)))

    def numbered(ref: Ref) -> Ref:
        return Ref(f"x{next(numbers)}")

    args = with_refs(layer.args, numbered)
    kwargs = dict(with_refs(layer.kwargs, numbered))
    masks = [state.mask for state in given]
    if any(mask is not None for mask in masks):

        def as_input(mask: Array) -> dict[str, Any]:
            name = f"x{len(inputs)}"
            inputs.append(Input(name, announced(mask, 0), mask.dtype.name))
            arrays.append(mask)
            return {REF: [name, 0]}

        for name, told in dialect(spoken).layers.masked(layer, masks).items():
            if name in kwargs:  # it is told so already
                continue
            several = isinstance(told, list)
            refs = [m if m is None else as_input(m) for m in (told if several else [told])]
            kwargs[name] = refs if several else refs[0]
    alone = replace(layer, args=args, kwargs=kwargs, shares=None)
    return Model("one_layer", tuple(inputs), (alone,), (Ref(layer.name),), spoken), arrays


def owned(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Layers that are left of a model: of each shared object the first call left owns it now."""
    owners: dict[str, str] = {}
    found = []
    for layer in layers:
        owner = owners.setdefault(layer.shares or layer.name, layer.name)
        shares = None if owner == layer.name else owner
        found.append(layer if layer.shares == shares else replace(layer, shares=shares))
    return tuple(found)


def ended_at(model: Model, *ends: Ref) -> Model:
    """The model that ends at these tensors, without the layers that nothing needs then."""
    needed = {end.producer for end in ends}
    layers = []
    for layer in reversed(model.layers):
        if layer.name in needed:
            layers.append(layer)
            needed.update(layer.inputs)
    outputs = tuple(dict.fromkeys(ends))
    return replace(model, layers=owned(reversed(layers)), outputs=outputs) if layers else model
