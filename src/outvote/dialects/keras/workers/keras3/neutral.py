"""Turns a live Keras model into neutral data, and neutral data into a Keras model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras.src import backend
from keras.src.models import Functional, Sequential

from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.protocol import Form
from outvote.dialects.keras.workers.keras3.graph import Graph, Workshop
from outvote.dialects.keras.workers.keras3.inference import inference_arguments
from outvote.dialects.keras.workers.keras3.masks import is_travelling, name_apart, nodes_of_masks
from outvote.worker.main import Refused
from outvote.worker.names import named_once

Tensors = dict[int, Ref]  # id of a symbolic tensor -> where it comes from in the neutral graph


Specs = dict[str, tuple[Form, ...]]  # of what each layer gives


def neutral(model: Any, blobs: BlobStore) -> tuple[Model, Specs]:
    """The graph of a Functional or Sequential model; nested models are laid open."""
    functional = functional_of(model)
    if functional is None:
        raise Refused(
            f"the model is a {type(model).__name__}, a subclass of keras.Model without a graph of "
            "layers; rebuild it with the functional API"
        )
    flattener = _Flattener(blobs)
    return flattener.flatten(functional, model.name), flattener.specs


def functional_of(model: Any) -> Any | None:
    if isinstance(model, Sequential):
        model = getattr(model, "_functional", None)
    return model if isinstance(model, Functional) else None


class _Flattener:
    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._layers: list[Layer] = []
        self._names: set[str] = set()
        self._first_call: dict[int, Layer] = {}
        self.specs: Specs = {}

    def flatten(self, functional: Any, name: str) -> Model:
        inputs = []
        tensors: Tensors = {}
        for tensor in functional.inputs:
            label = named_once(self._names, tensor._keras_history.operation.name)
            dtype = backend.standardize_dtype(tensor.dtype)
            inputs.append(Input(label, tuple(tensor.shape), dtype))
            tensors[id(tensor)] = Ref(label)
        self._walk(functional, tensors, "")
        outputs = tuple(tensors[id(tensor)] for tensor in functional.outputs)
        return Model(name, tuple(inputs), tuple(self._layers), outputs, "keras")

    def _walk(self, functional: Any, tensors: Tensors, prefix: str) -> None:
        by_depth = functional._nodes_by_depth
        left_out = nodes_of_masks(functional)
        for depth in sorted(by_depth, reverse=True):
            for node in by_depth[depth]:
                if not node.is_input and id(node) not in left_out:
                    self._add(node, tensors, prefix)

    def _add(self, node: Any, tensors: Tensors, prefix: str) -> None:
        operation = node.operation
        nested = functional_of(operation)
        label = named_once(self._names, prefix + operation.name)
        if nested is not None and _can_be_laid_open(node, nested):
            inner = {
                id(symbol): tensors[id(outer)]
                for symbol, outer in zip(nested.inputs, node.input_tensors, strict=True)
            }
            self._walk(nested, inner, f"{label}/")
            for outer, symbol in zip(node.outputs, nested.outputs, strict=True):
                tensors[id(outer)] = inner[id(symbol)]
            return
        self._layers.append(self._layer(node, label, tensors))
        self.specs[label] = tuple(
            (tuple(symbol.shape), backend.standardize_dtype(symbol.dtype))
            for symbol in node.outputs
        )
        for index, symbol in enumerate(node.outputs):
            tensors[id(symbol)] = Ref(label, index)

    def _layer(self, node: Any, label: str, tensors: Tensors) -> Layer:
        operation = node.operation
        args = _encode(list(node.arguments.args), tensors)
        own = {
            key: v for key, v in node.arguments.kwargs.items() if not is_travelling(key, v, node)
        }
        kwargs = _encode(own, tensors)
        kwargs.pop("training", None)  # what a model was traced with; `predict` overrules it
        kwargs |= inference_arguments(operation)
        first = self._first_call.get(id(operation))
        if first is not None:
            return replace(first, name=label, args=args, kwargs=kwargs, shares=first.name)
        spec = keras.saving.serialize_keras_object(operation)
        layer = Layer(
            name=label,
            kind=spec["class_name"],
            config=spec["config"],
            args=args,
            kwargs=kwargs,
            weights=tuple(self._weight(v) for v in getattr(operation, "weights", ())),
            origin={
                "module": spec["module"],
                "registered": spec["registered_name"],
                "build": spec.get("build_config"),
            },
        )
        self._first_call[id(operation)] = layer
        return layer

    def _weight(self, variable: Any) -> Weight:
        value = np.asarray(keras.ops.convert_to_numpy(variable))
        return Weight(variable.name, self._blobs.put(value), tuple(value.shape))


def _can_be_laid_open(node: Any, nested: Any) -> bool:
    """A nested model may cast or reshape what it is given; then it stays one layer."""
    inputs = node.input_tensors
    return (
        all(value is None for value in node.arguments.kwargs.values())
        and len(inputs) == len(nested.inputs)
        and all(
            len(outer.shape) == len(symbol.shape) and outer.dtype == symbol.dtype
            for outer, symbol in zip(inputs, nested.inputs, strict=True)
        )
    )


def _encode(structure: Any, tensors: Tensors) -> Any:
    """Call arguments as JSON: tensors become references, Keras objects their serialised form."""
    if isinstance(structure, backend.KerasTensor):
        ref = tensors[id(structure)]
        return {REF: [ref.producer, ref.index]}
    if isinstance(structure, Mapping):
        return {str(key): _encode(value, tensors) for key, value in structure.items()}
    if isinstance(structure, tuple):
        return {"$tuple": [_encode(item, tensors) for item in structure]}
    if isinstance(structure, list):
        return [_encode(item, tensors) for item in structure]
    if structure is None or isinstance(structure, bool | int | float | str):
        return structure
    return {"$object": keras.saving.serialize_keras_object(structure)}


def functional(graph: Graph) -> Any:
    """The model as Keras builds it: calls of layers on symbolic tensors.

    What a layer does in training is not to be had: `predict` tells every layer not to train.
    """
    model = graph.model
    trains = [layer.name for layer in model.layers if layer.kwargs.get("training")]
    if trains:
        raise NotImplementedError(f"layer {trains[0]!r} is called in training")
    feeds = [
        keras.Input(batch_shape=item.shape, dtype=item.dtype, name=item.name)
        for item in model.inputs
    ]
    outputs = graph.forward(feeds)
    name_apart(outputs)
    return keras.Model(feeds, outputs, name=model.name)


def save(model: Model, workshop: Workshop, path: Path) -> None:
    """Write a neutral model as a `.keras` file that Keras loads without outvote."""
    functional(Graph(model, workshop, lambda name: None)).save(path)
