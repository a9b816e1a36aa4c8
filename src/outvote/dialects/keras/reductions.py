"""Ways to make a layer of Keras smaller or plainer; between them stand those of any graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.model import Layer, Ref, Weight
from outvote.core.specimen import Specimen
from outvote.dialects.keras.initial import initial_value
from outvote.dialects.keras.layers import INERT, INERT_ENDINGS, dtype, stale
from outvote.triage.reductions import (
    Builder,
    Reduction,
    fewer_inputs,
    fewer_layers,
    fewer_outputs,
    plain_numbers,
    smaller_shapes,
    used_inputs,
)

_NOT_FOR_SIZE = ("name", "dtype", "trainable", "seed", "axis", "epsilon", "momentum", "rate")


def inner_layers(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """What a wrapper wraps, or a layer's activation, in the place of the whole layer."""
    if len(specimen.model.layers) != 1 or len(specimen.inputs) != 1:
        return
    layer = specimen.model.layers[0]
    found = []
    wrapped = layer.config.get("layer")
    if isinstance(wrapped, Mapping) and isinstance(wrapped.get("config"), Mapping):
        found.append((str(wrapped["class_name"]), wrapped["config"]))
    activation = layer.config.get("activation")
    if isinstance(activation, str) and activation != "linear" and layer.kind != "Activation":
        found.append(("Activation", {"activation": activation}))
    for kind, config in found:
        shared = {key: layer.config[key] for key in ("name", "dtype") if key in layer.config}
        changed = replace(layer, kind=kind, config={**config, **shared}, weights=(), shares=None)
        inner = stale(changed)
        outputs = (Ref(layer.name),)
        model = replace(specimen.model, layers=(inner,), outputs=outputs)
        rebuilt = builder.rebuilt(replace(specimen, model=model))
        if rebuilt is not None:
            yield rebuilt


def fewer_arguments(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Calls without one of their arguments, and what it alone read."""
    for layer in specimen.model.layers:
        for name, value in layer.kwargs.items():
            if value is None or value is False:
                continue
            kwargs = {key: other for key, other in layer.kwargs.items() if key != name}
            fewer = specimen.with_layer(stale(replace(layer, kwargs=kwargs)))
            rebuilt = builder.rebuilt(used_inputs(fewer))
            if rebuilt is not None:
                yield rebuilt


def default_parameters(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Parameters at their defaults: the type, then all others, then one at a time."""
    known = builder.defaults(specimen)
    for layer in specimen.model.layers:
        if "float" in (dtype(layer) or "") and dtype(layer) != "float32":
            yield from _rebuilt(specimen, layer, {**layer.config, "dtype": "float32"}, builder)
        told = {k: v for k, v in known.get(layer.name, {}).items() if k not in INERT}
        other = {k: v for k, v in told.items() if layer.config.get(k, v) != v}
        bold = [other] if len(other) > 1 else []
        for changes in [*bold, *({key: value} for key, value in other.items())]:
            yield from _rebuilt(specimen, layer, {**layer.config, **changes}, builder)


def smaller_parameters(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Sizes in the configuration as small as possible: 1, 2, 3, half."""
    known = builder.defaults(specimen)
    for layer in specimen.model.layers:
        for changed in _smaller_trees(layer.config, known.get(layer.name, {})):
            yield from _rebuilt(specimen, layer, changed, builder)


def _rebuilt(
    specimen: Specimen, layer: Layer, config: Mapping[str, Any], builder: Builder
) -> Iterator[Specimen]:
    rebuilt = builder.rebuilt(specimen.with_config(layer.name, config))
    if rebuilt is not None:
        yield rebuilt


def _smaller_trees(config: Any, defaults: Mapping[str, Any]) -> Iterator[Any]:
    """A configuration with one size in it made smaller, nested layers included.

    What stands at its default stays there: that is plainer than any number.
    """
    for key, value in config.items():
        if key in defaults and defaults[key] == value:
            continue
        if key in _NOT_FOR_SIZE or key.endswith(INERT_ENDINGS):
            continue
        for smaller in _smaller(value):
            yield {**config, key: smaller}


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield from sorted({n for n in (1, 2, 3, value // 2) if 0 < n < value})
    elif isinstance(value, float) and value not in (0.0, 0.5, 1.0, 2.0):
        yield from (1.0, 2.0, 0.5)
    elif isinstance(value, list | tuple) and value and all(type(n) is int for n in value):
        for n in sorted({1, 2, 3, *value}):
            if n < max(value):
                yield [n] * len(value)
        for place, one in enumerate(value):
            for n in _smaller(one):
                yield [*value[:place], n, *value[place + 1 :]]
    elif isinstance(value, Mapping) and isinstance(value.get("config"), Mapping):
        for inner in _smaller_trees(value["config"], {}):
            yield {**value, "config": inner, "build_config": None}


def initial_weights(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Weights as the layer makes them, of zeros or ones: no script need set them."""
    for layer in specimen.model.layers:
        weights = tuple(_initial(layer, weight, builder) for weight in layer.weights)
        if weights != layer.weights:
            yield specimen.with_layer(replace(layer, weights=weights))


def _initial(layer: Layer, weight: Weight, builder: Builder) -> Weight:
    found = initial_value(layer, weight, np.asarray(builder.blobs.get(weight.digest)))
    return weight if found is None else replace(weight, digest=builder.blobs.put(found))


def other_numbers(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Plainer inputs and weights; those that stand as the layer makes them are plain."""

    def made(of: Specimen) -> list[str]:
        """What weights are that the layer makes so itself."""
        return [
            weight.digest
            for layer in of.model.layers
            for weight in layer.weights
            if _initial(layer, weight, builder) == weight
        ]

    kept = len(made(specimen))
    yield from (one for one in plain_numbers(specimen, builder) if len(made(one)) >= kept)


REDUCTIONS: Sequence[Reduction] = (
    fewer_outputs,
    fewer_layers,
    fewer_inputs,
    fewer_arguments,
    inner_layers,
    default_parameters,
    smaller_shapes,
    smaller_parameters,
    initial_weights,
    other_numbers,
)
