"""Builds layers anew after their configuration or their inputs have changed: what do they need?"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import keras
from keras import tree

from outvote.core.model import Layer, digest_of
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

_MOST_TOLD = 1000
_required: dict[str, tuple[str, ...]] = {}  # parameters that have no default, by kind of layer
_told: dict[str, dict[str, Any]] = {}  # defaults, by kind and by what has none


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
    """Of one kind, most that are asked for differ in what they may leave out: told once."""
    spec = {**spec_of(layer), "build_config": None}
    kind = digest_of(spec["class_name"], spec["module"], spec["registered_name"])
    if kind not in _required:
        _required[kind] = _required_of(type(workshop.revive(spec)))
    kept = {k: v for k, v in layer.config.items() if k in (*_required[kind], "name", "dtype")}
    key = digest_of(kind, kept)
    if key not in _told:
        if len(_told) >= _MOST_TOLD:
            _told.clear()
        _told[key] = _defaults_beside(_required[kind], {**spec, "config": kept}, workshop)
    return _told[key]


def _required_of(kind: Any) -> tuple[str, ...]:
    return tuple(
        p.name
        for p in inspect.signature(kind.__init__).parameters.values()
        if p.default is inspect.Parameter.empty and p.kind is not p.VAR_KEYWORD
    )


def _defaults_beside(
    required: Sequence[str], spec: dict[str, Any], workshop: Workshop
) -> dict[str, Any]:
    try:
        made = workshop.revive(spec)
    except (ValueError, TypeError):  # some kinds need one of several optional parameters
        return {}
    config: dict[str, Any] = keras.saving.serialize_keras_object(made)["config"]
    return {key: value for key, value in config.items() if key not in required}
