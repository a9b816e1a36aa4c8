"""A Specimen: a model and its inputs on which a finding shows, made smaller and smaller."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect
from outvote.core.instances import announced, count_of, taken
from outvote.core.model import Layer, Model, Weight, digest_of
from outvote.core.states import State


@dataclass(frozen=True)
class Specimen:
    """A model with inputs; a mask is an input like any other."""

    model: Model
    inputs: tuple[Array, ...]

    @property
    def count(self) -> int:
        """How many instances are in the batch."""
        return count_of(self.inputs, self.axes)

    @property
    def axes(self) -> tuple[int | None, ...]:
        """The batch axis of each input."""
        return tuple(item.batch for item in self.model.inputs)

    def instances(self, indices: slice) -> Specimen:
        """The same on some instances of the batch."""
        pairs = zip(self.inputs, self.axes, strict=True)
        return self.with_inputs([taken(array, axis, indices) for array, axis in pairs])

    @property
    def last(self) -> Layer:
        """The layer whose output is compared."""
        return self.model.layer(self.model.outputs[0].producer)

    @property
    def numbers(self) -> int:
        """How many numbers someone would have to look at: inputs and weights."""
        return sum(array.size for array in self.inputs) + self.model.weight_count

    def key(self, blobs: BlobStore) -> str:
        """Identity, so that nothing is tried twice."""
        return digest_of(self.model.to_json(), [blobs.put(array) for array in self.inputs])

    def with_inputs(self, inputs: Sequence[Array]) -> Specimen:
        """The same model, fed with other arrays; the announced shapes follow."""
        shapes = tuple(
            replace(
                item,
                shape=announced(array, item.batch),
                dtype=State.fed(array, item).dtype,
            )
            for item, array in zip(self.model.inputs, inputs, strict=True)
        )
        return Specimen(replace(self.model, inputs=shapes), tuple(inputs))

    def with_layer(self, layer: Layer) -> Specimen:
        layers = tuple(layer if item.name == layer.name else item for item in self.model.layers)
        return replace(self, model=replace(self.model, layers=layers))

    def with_config(self, name: str, config: Mapping[str, Any]) -> Specimen:
        """One layer with another configuration; its build and weights are stale until rebuilt."""
        layer = self.model.layer(name)
        return self.with_layer(
            dialect(self.model.dialect).layers.stale(replace(layer, config=config))
        )


def fitted(array: Array, shape: Sequence[int]) -> Array:
    """An array cut to a shape; where it is too short it is repeated."""
    if array.ndim != len(shape) or 0 in array.shape:
        return np.resize(array, tuple(shape)) if array.size else np.zeros(tuple(shape), array.dtype)
    repeats = [max(1, math.ceil(n / m)) for n, m in zip(shape, array.shape, strict=True)]
    cut: Array = np.tile(array, repeats)[tuple(slice(n) for n in shape)]
    return np.ascontiguousarray(cut)


def weights_for(layer: Layer, wanted: Sequence[Sequence[Any]], blobs: BlobStore) -> list[Weight]:
    """The layer's weights fitted to what a rebuilt one wants: (name, shape, dtype) each."""
    same_number = len(wanted) == len(layer.weights)
    found = []
    for place, (name, shape, dtype) in enumerate(wanted):
        candidates = [w for w in layer.weights if w.name == name]
        source = layer.weights[place] if same_number else next(iter(candidates), None)
        floats = np.float32 if dtype == "bfloat16" else np.dtype(dtype)
        if source is None:
            array: Array = np.zeros(tuple(shape), floats)
        else:
            array = fitted(np.asarray(blobs.get(source.digest)), shape).astype(floats)
        found.append(Weight(name, blobs.put(array), tuple(shape)))
    return found
