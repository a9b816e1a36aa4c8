"""Builds layers anew after their configuration or their inputs have changed: what do they need?"""

from __future__ import annotations

import inspect
from typing import Any

import keras
from keras import tree

from outvote.core.model import Layer
from outvote.core.protocol import (
    DefaultsTold,
    LayersRebuilt,
    RebuildLayers,
    RebuiltLayer,
    TellDefaults,
)
from outvote.dialects.keras.workers.keras3.graph import (
    Graph,
    Workshop,
    asked_for,
    spec_of,
    zeros_for_weights,
)
from outvote.worker.main import Context


def rebuild(context: Context, request: RebuildLayers) -> LayersRebuilt:
    """The full configuration and the weights of every layer on inputs of these shapes."""
    model = request.model
    workshop = Workshop(context.blobs, False, {})
    graph = Graph(model, workshop, context.enter)
    states: dict[str, list[Any]] = {
        item.name: [keras.KerasTensor(tuple(shape), item.dtype)]
        for item, shape in zip(model.inputs, request.shapes, strict=True)
    }
    told = []
    for layer in model.layers:
        context.enter(layer.name)
        with zeros_for_weights():
            made = workshop.revive({**spec_of(layer), "build_config": None})
            args, kwargs = graph.filled(layer, states)
            states[layer.name] = list(tree.flatten(made(*args, **asked_for(made, kwargs))))
        told.append(
            RebuiltLayer(
                keras.saving.serialize_keras_object(made)["config"],
                {"build": made.get_build_config()},
                tuple(
                    (v.name, tuple(v.shape), keras.backend.standardize_dtype(v.dtype))
                    for v in made.weights
                ),
            )
        )
    return LayersRebuilt(layers=tuple(told))


def defaults(context: Context, request: TellDefaults) -> DefaultsTold:
    """What each layer's configuration is when it is given only what it must be given."""
    workshop = Workshop(context.blobs, False, {})
    found = {layer.name: _defaults(layer, workshop) for layer in request.model.layers}
    return DefaultsTold(defaults=found)


def _defaults(layer: Layer, workshop: Workshop) -> dict[str, Any]:
    kind = type(workshop.revive({**spec_of(layer), "build_config": None}))
    required = [
        p.name
        for p in inspect.signature(kind.__init__).parameters.values()
        if p.default is inspect.Parameter.empty and p.kind is not p.VAR_KEYWORD
    ]
    kept = {k: v for k, v in layer.config.items() if k in (*required, "name", "dtype")}
    spec = {**spec_of(layer), "config": kept, "build_config": None}
    try:
        made = workshop.revive(spec)
    except (ValueError, TypeError):  # some kinds need one of several optional parameters
        return {}
    config: dict[str, Any] = keras.saving.serialize_keras_object(made)["config"]
    return {key: value for key, value in config.items() if key not in required}
