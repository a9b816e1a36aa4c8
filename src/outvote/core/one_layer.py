"""A layer taken out of its model: a model of its own, fed with what it read there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.states import State


def one_layer(layer: Layer, given: tuple[State, ...]) -> tuple[Model, list[Array]]:
    """A model of this layer alone; a mask becomes an input that is passed as `mask`."""
    arrays = [array for array, _ in given]
    inputs = [
        Input(f"x{i}", (None, *array.shape[1:]), array.dtype.name) for i, array in enumerate(arrays)
    ]
    numbers = iter(range(len(arrays)))
    args = _renumbered(layer.args, numbers)
    kwargs = dict(_renumbered(layer.kwargs, numbers))
    masks = [mask for _, mask in given]
    if any(mask is not None for mask in masks) and "mask" not in kwargs:
        refs: list[Any] = []
        for mask in masks:
            if mask is None:
                refs.append(None)
                continue
            name = f"x{len(inputs)}"
            inputs.append(Input(name, (None, *mask.shape[1:]), mask.dtype.name))
            arrays.append(mask)
            refs.append({REF: [name, 0]})
        kwargs["mask"] = refs[0] if len(refs) == 1 else refs
    alone = replace(layer, args=args, kwargs=kwargs, shares=None)
    return Model("one_layer", tuple(inputs), (alone,), (Ref(layer.name),)), arrays


def _renumbered(structure: Any, numbers: Any) -> Any:
    """Call arguments that read x0, x1, … in call order."""
    if isinstance(structure, dict):
        if REF in structure:
            return {REF: [f"x{next(numbers)}", 0]}
        return {key: _renumbered(value, numbers) for key, value in structure.items()}
    if isinstance(structure, list | tuple):
        return [_renumbered(value, numbers) for value in structure]
    return structure
