"""What layers this Keras has, and what one of them would look like at a place in a model."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import tree

from outvote.core.model import REF, find_refs
from outvote.core.protocol import KindsListed, LayerMade, MakeLayer
from outvote.dialects.keras.workers.keras3.graph import zeros_for_weights
from outvote.dialects.keras.workers.keras3.inference import inference_arguments
from outvote.worker.main import Refused

_GENERAL = ("self", "args", "kwargs", "name", "trainable", "dtype", "autocast")
_MATTERS_NOT = ("_initializer", "_regularizer", "_constraint")
NESTED = "$layer"  # {"$layer": [kind, parameters]} among parameters is a layer of its own


def catalogue() -> KindsListed:
    """Every layer class with its parameters, and every activation that needs nothing but x."""
    classes = _classes()
    return KindsListed(
        kinds={name: _parameters(classes[name]) for name in sorted(classes)},
        activations=sorted(filter(_plain, vars(keras.activations))),
        arguments={name: _arguments(classes[name]) for name in sorted(classes)},
    )


@functools.cache
def _classes() -> dict[str, Any]:
    """Layer classes by their own names: some are offered under others, or under several."""
    return {
        value.__name__: value
        for value in vars(keras.layers).values()
        if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    }


def _parameters(kind: Any) -> list[dict[str, Any]]:
    found = []
    for parameter in inspect.signature(kind.__init__).parameters.values():
        if parameter.name in _GENERAL or parameter.name.endswith(_MATTERS_NOT):
            continue
        required = parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        plain = isinstance(default, None | bool | int | float | str | tuple)
        found.append(
            {
                "name": parameter.name,
                "required": required,
                "default": default if plain else None,
            }
        )
    return found


def _arguments(kind: Any) -> list[str]:
    """What its call takes besides the first tensor, by name."""
    parameters = list(inspect.signature(kind.call).parameters.values())[2:]
    return [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _plain(name: str) -> bool:
    value = getattr(keras.activations, name)
    if name.startswith("_") or not inspect.isfunction(value) or name in _NOT_ACTIVATIONS:
        return False
    parameters = list(inspect.signature(value).parameters.values())
    return all(p.default is not inspect.Parameter.empty for p in parameters[1:])


_NOT_ACTIVATIONS = ("get", "serialize", "deserialize")


def make(request: MakeLayer) -> LayerMade:
    """Build a layer on symbolic tensors: its serialised form, its weights, what comes out.

    Weights that are not floats (states of random generators) come with their first values.
    """
    tensors = [keras.KerasTensor(shape, dtype) for shape, dtype in request.given]
    with zeros_for_weights():
        layer = instance(request.kind, request.parameters)
        outputs = tree.flatten(_called(layer, tensors, request))
    if request.tried:
        _require_announced(layer, request, outputs)
    weights, firsts = [], []
    for variable in layer.weights:
        dtype = keras.backend.standardize_dtype(variable.dtype)
        weights.append((variable.name, tuple(variable.shape), dtype))
        if "float" not in dtype:
            firsts.append(np.asarray(keras.ops.convert_to_numpy(variable)))
    spec = keras.saving.serialize_keras_object(layer)
    return LayerMade(
        spec={
            "kind": spec["class_name"],
            "config": spec["config"],
            "module": spec["module"],
            "registered": spec["registered_name"],
            "build": spec.get("build_config"),
        },
        kwargs=inference_arguments(layer),
        weights=tuple(weights),
        outputs=tuple(
            (tuple(tensor.shape), keras.backend.standardize_dtype(tensor.dtype))
            for tensor in outputs
        ),
        firsts=tuple(firsts),
    )


def _called(layer: Any, tensors: Sequence[Any], request: MakeLayer) -> Any:
    named = _tensors_in(request.named, tensors)
    plain = tensors[: len(tensors) - len(list(find_refs(request.named)))]
    named = {**inference_arguments(layer), **named}
    return layer(plain, **named) if request.joined else layer(*plain, **named)


def _tensors_in(structure: Any, tensors: Sequence[Any]) -> Any:
    """Arguments of a call with tensors in the place of references."""
    if isinstance(structure, Mapping):
        if REF in structure:
            return tensors[structure[REF][1]]
        if "$tuple" in structure:
            return tuple(_tensors_in(item, tensors) for item in structure["$tuple"])
        return {key: _tensors_in(value, tensors) for key, value in structure.items()}
    if isinstance(structure, list | tuple):
        return [_tensors_in(item, tensors) for item in structure]
    return structure


def _require_announced(layer: Any, request: MakeLayer, announced: Any) -> None:
    """Refuse a layer that gives another shape than it announced; one that fails is accepted."""
    zeros = [
        keras.ops.zeros([2 if n is None else n for n in shape], dtype)
        for shape, dtype in request.given
    ]
    try:
        outputs = tree.flatten(_called(layer, zeros, request))
    except Exception:  # whether it works is for the targets to show
        return
    for tensor, symbol in zip(outputs, announced, strict=True):
        if any(n is not None and n != m for n, m in zip(symbol.shape, tensor.shape, strict=True)):
            raise Refused(f"{layer.name} announces {symbol.shape} and gives {tuple(tensor.shape)}")


def instance(kind: str, parameters: Mapping[str, Any]) -> Any:
    """A layer of that kind; nested layers among its parameters are made first."""
    filled = {key: _filled(value) for key, value in parameters.items()}
    return _classes()[kind](**filled)


def _filled(value: Any) -> Any:
    if isinstance(value, Mapping) and NESTED in value:
        kind, parameters = value[NESTED]
        return instance(kind, parameters)
    if isinstance(value, Mapping) and "class_name" in value:  # as Keras writes it in a file
        return keras.saving.deserialize_keras_object(dict(value))
    if isinstance(value, list):
        return [_filled(item) for item in value]
    return value
