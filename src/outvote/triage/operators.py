"""Ways to make calls of operators plainer, for dialects whose layers are such calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.model import Layer, Weight
from outvote.core.specimen import Specimen
from outvote.triage.reductions import Builder

_SIZES = (1, 2, 3, 4)
_MOST_LAYERS = 3  # of a specimen whose sizes and attributes are looked at


def fewer_attributes(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Without attributes, all of them or one: then they have the operator's defaults."""
    for layer in few_layers(specimen):
        names = list(_parameters(specimen, layer))
        for gone in [names, *([name] for name in names if len(names) > 1)]:
            if gone:
                kept = {key: value for key, value in layer.config.items() if key not in gone}
                yield specimen.with_layer(replace(layer, config=kept))


def smaller_attributes(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Whole numbers among the attributes as small as possible, lists of them evenly."""
    for layer in few_layers(specimen):
        for key, value in _parameters(specimen, layer).items():
            for least in smaller(value):
                yield specimen.with_layer(replace(layer, config={**layer.config, key: least}))


def smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, int):
        yield from sorted({n for n in (0, 1, 2, value // 2) if 0 <= n < value})
    elif isinstance(value, list | tuple) and value and all(type(n) is int for n in value):
        for n in (0, 1, 2):
            if n < max(value):
                yield [min(n, old) for old in value]


def equal_sizes(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """All dimensions of one size cut alike, of inputs and constants: they belong together."""
    layers = few_layers(specimen)
    weights = [
        (layer, place, np.asarray(builder.blobs.get(weight.digest)))
        for layer in layers
        for place, weight in enumerate(layer.weights)
    ]
    arrays = [*specimen.inputs, *(array for _, _, array in weights)]
    sizes = sorted({n for array in arrays for n in array.shape if n > 1}, reverse=True)
    for size in sizes:
        for wanted in sorted({n for n in (*_SIZES, size // 2) if 0 < n < size}):
            inputs = [_cut(array, size, wanted) for array in specimen.inputs]
            cut = {
                (layer.name, place): _cut(array, size, wanted) for layer, place, array in weights
            }
            yield _with_weights(specimen.with_inputs(inputs), cut, builder)


def _cut(array: Array, size: int, wanted: int) -> Array:
    chosen = tuple(slice(wanted) if n == size else slice(None) for n in array.shape)
    return np.ascontiguousarray(array[chosen]).reshape(
        [wanted if n == size else n for n in array.shape]
    )


def _with_weights(
    specimen: Specimen, arrays: Mapping[tuple[str, int], Array], builder: Builder
) -> Specimen:
    for layer in specimen.model.layers:
        weights = [
            _stored(weight, arrays.get((layer.name, place)), builder)
            for place, weight in enumerate(layer.weights)
        ]
        specimen = specimen.with_layer(replace(layer, weights=tuple(weights)))
    return specimen


def _stored(weight: Weight, array: Array | None, builder: Builder) -> Weight:
    if array is None:
        return weight
    return Weight(weight.name, builder.blobs.put(array), array.shape)


def few_layers(specimen: Specimen) -> Sequence[Layer]:
    layers = specimen.model.layers
    return layers if len(layers) <= _MOST_LAYERS else ()


def _parameters(specimen: Specimen, layer: Layer) -> Mapping[str, Any]:
    return dialect(specimen.model.dialect).layers.parameters(layer)
