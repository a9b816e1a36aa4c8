"""What a specimen gives exactly: our reference, layer by layer, where it knows every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect
from outvote.core.model import Layer, find_refs
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.states import State


def reference_of(specimen: Specimen, blobs: BlobStore, real: bool = False) -> Outputs | None:
    """The outputs in float64; None where a layer is not covered, or the dialect has no formulas.

    `real`: whole numbers are computed with as floats, without overflow, and are not rounded to.
    """

    def held(array: Array) -> Array:
        return array.astype(np.float64) if real and array.dtype.kind in "iu" else array

    wing = dialect(specimen.model.dialect)
    if wing.reference is None:
        return None
    states: dict[str, list[State]] = {
        item.name: [State(held(array), dtype=item.dtype, batch=item.batch)]
        for item, array in zip(specimen.model.inputs, specimen.inputs, strict=True)
    }
    for layer in specimen.model.layers:
        if len(specimen.model.layers) > 1 and wing.layers.makes_masks(layer):
            return None  # masks are not carried from layer to layer here
        layer, given = _with_masks(layer, states)
        weights = [held(np.asarray(blobs.get(weight.digest))) for weight in layer.weights]
        found = wing.reference.reference(layer, weights, given)
        if found is None:
            return None
        states[layer.name] = [
            State(array, batch=layer.batch_axis(n)) for n, array in enumerate(found)
        ]
    arrays = tuple(states[r.producer][r.index].array for r in specimen.model.outputs)
    axes = tuple(map(specimen.model.batch_axis, specimen.model.outputs))
    return Outputs(arrays, tuple(array.dtype.name for array in arrays), axes)


def plain_sums(specimen: Specimen, blobs: BlobStore) -> list[Outputs]:
    """What a layer that sums gives, if its terms are added one after the other in its own type.

    One for each usual order; none of several layers, or where the dialect knows no sums.
    """
    sums, layers = dialect(specimen.model.dialect).sums, specimen.model.layers
    if sums is None or len(layers) != 1:
        return []
    weights = [np.asarray(blobs.get(weight.digest)) for weight in layers[0].weights]
    fed = zip(specimen.model.inputs, specimen.inputs, strict=True)
    given = {item.name: State.fed(array, item) for item, array in fed}
    states = [given[ref.producer] for ref in layers[0].refs()]
    axes = tuple(map(specimen.model.batch_axis, specimen.model.outputs))
    return [
        Outputs(tuple(found), tuple(array.dtype.name for array in found), axes)
        for found in sums.in_turn(layers[0], weights, states)
    ]


def _with_masks(layer: Layer, states: Mapping[str, list[State]]) -> tuple[Layer, list[State]]:
    """The layer without its argument `mask`, and its tensors with the masks that it named."""
    named = layer.kwargs.get("mask")
    plain = replace(layer, kwargs={k: v for k, v in layer.kwargs.items() if k != "mask"})
    given = [states[ref.producer][ref.index] for ref in plain.refs()]
    wanted = named if isinstance(named, list | tuple) else [named]
    masks = [next(find_refs(item), None) for item in wanted]
    for place, ref in enumerate(masks[: len(given)]):
        if ref is not None:
            mask = states[ref.producer][ref.index].array
            given[place] = State(given[place].array, mask, given[place].dtype)
    return plain, given
