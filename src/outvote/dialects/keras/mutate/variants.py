"""A layer with other parameters: what AUDEE's network mutation and its causal search both need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Json, Layer, Weight, find_refs
from outvote.dialects.keras import layers
from outvote.dialects.keras.mutate.catalogue import Catalogue, Kind
from outvote.dialects.keras.mutate.maker import Blueprint, Maker, by_place, drawn_weight
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.mutate.subject import Spec


def current(kind: Kind, layer: Layer) -> dict[str, Any]:
    """The parameters that a layer has now, as its constructor takes them."""
    known = {name: layer.config[name] for name in kind.parameters if name in layer.config}
    return (
        {**known, "dtype": layers.dtype(layer) or "float32"} if "dtype" in layer.config else known
    )


def others(kind: str, name: str, value: Any) -> list[Any]:
    """Other legal values of a parameter, simple ones first (AUDEE's `replace`)."""
    row = parameter(kind, name)
    if row is None:
        return []
    known = [*row.corners, *([None] if row.may_be_none else [])]
    return [other for other in known if not same(other, value)]


def same(a: Any, b: Any) -> bool:
    """Whether two values of a parameter mean the same: 2 is (2, 2)."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, list | tuple) or isinstance(b, list | tuple):
        many, one = (a, b) if isinstance(a, list | tuple) else (b, a)
        return bool(many) and all(same(item, one) for item in many)
    return type(a) is type(b) and bool(a == b)


def can_vary(catalogue: Catalogue, layer: Layer) -> bool:
    """Whether the layer is of a kind we know, and its call can be made elsewhere."""
    return layer.kind in catalogue.kinds and not _holds_object(layer.kwargs)


def is_plain_call(layer: Layer) -> bool:
    """Whether a layer is called with tensors and nothing else."""
    return all(value is None for value in layer.kwargs.values())


def _holds_object(structure: Json) -> bool:
    if isinstance(structure, Mapping):
        return "$object" in structure or any(map(_holds_object, structure.values()))
    return isinstance(structure, list | tuple) and any(map(_holds_object, structure))


def variant(
    layer: Layer,
    parameters: Mapping[str, Any],
    given: Sequence[Spec],
    maker: Maker,
    rng: np.random.Generator,
) -> tuple[Layer, Blueprint] | None:
    """The layer with these parameters on these tensors; None where Keras refuses them."""
    named = by_place(layer.kwargs, len(list(find_refs(layer.args))))
    made = maker.make(layer.kind, parameters, given, is_joined(layer), named=named)
    if made is None or not made.outputs:
        return None
    changed = replace(
        layer,
        config={**made.spec["config"], "name": layer.name},
        origin={**layer.origin, "build": made.spec["build"]},
        weights=_weights(made, layer, maker.blobs, rng),
        shares=None,
    )
    return changed, made


def is_joined(layer: Layer) -> bool:
    """Whether a layer takes its tensors as one list."""
    return bool(layer.args) and isinstance(layer.args[0], list | tuple)


def _weights(
    made: Blueprint, layer: Layer, blobs: BlobStore, rng: np.random.Generator
) -> tuple[Weight, ...]:
    """The layer's own weights, as far as they go; where shapes differ they are cut or repeated."""
    before = {weight.name: weight for weight in layer.weights}
    firsts = iter(made.firsts)
    weights = []
    for name, shape, dtype in made.weights:
        if "float" not in dtype:
            value = next(firsts)
        elif name not in before:
            value = drawn_weight(name, shape, dtype, rng)
        elif before[name].shape == shape:
            weights.append(before[name])
            continue
        else:
            value = _fitted(np.asarray(blobs.get(before[name].digest)), shape)
        weights.append(Weight(name, blobs.put(value), tuple(value.shape)))
    return tuple(weights)


def _fitted(value: Array, shape: tuple[int, ...]) -> Array:
    if not value.size:
        return np.zeros(shape, value.dtype)
    return np.resize(value, shape)
