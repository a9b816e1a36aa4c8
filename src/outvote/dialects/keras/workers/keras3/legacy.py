"""Loads legacy HDF5 models, and mends what Keras 3 itself trips over in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
from keras.src.legacy.saving import legacy_h5_format, saving_options, saving_utils
from keras.src.saving import serialization_lib

from outvote.dialects.keras.workers.keras3.graph import zeros_for_weights
from outvote.dialects.keras.workers.keras3.hdf5 import opened
from outvote.dialects.keras.workers.keras3.safety import refuse_code
from outvote.worker.main import Refused


def load(path: Path, custom: Mapping[str, Any], allow_code: bool) -> Any:
    with opened(path, path.name) as (file, size):
        text = file.attrs.get("model_config")
        if text is None:
            raise Refused(
                f"{path.name} holds weights but no architecture; "
                "give the architecture as JSON and this file with --weights"
            )
        if "model_weights" not in file:
            raise Refused(f"{path.name} holds an architecture but no weights; save it again")
        config = mended(read_config(text, path.name, custom, allow_code))
        with zeros_for_weights(size):
            model = model_of(config, custom, allow_code)
        legacy_h5_format.load_weights_from_hdf5_group(file["model_weights"], model)
    return model


def model_of(config: Any, custom: Mapping[str, Any], allow_code: bool) -> Any:
    """A model from its configuration, in today's or in the legacy vocabulary."""
    with keras.saving.custom_object_scope(dict(custom)):
        if "module" in config:
            return keras.saving.deserialize_keras_object(config, safe_mode=not allow_code)
        legacy = saving_options.keras_option_scope(use_legacy_config=True)
        with legacy, serialization_lib.SafeModeScope(not allow_code):
            return saving_utils.model_from_config(config)


def from_architecture(
    path: Path, weights: Path, custom: Mapping[str, Any], allow_code: bool
) -> Any:
    """A model from an architecture in JSON and a weights file of either form."""
    config = mended(read_config(path.read_text(encoding="utf-8"), path.name, custom, allow_code))
    with opened(weights, weights.name) as (file, size):
        with zeros_for_weights(size):
            model = model_of(config, custom, allow_code)
        if not weights.name.endswith(".weights.h5"):
            group = file.get("model_weights", file)
            legacy_h5_format.load_weights_from_hdf5_group(group, model)
            return model
    model.load_weights(weights)
    return model


def read_config(text: str | bytes, name: str, custom: Mapping[str, Any], allow_code: bool) -> Any:
    """A configuration as plain data, if there is nothing in it that a file must not bring."""
    config = json.loads(text)
    if not isinstance(config, dict):
        raise Refused(f"{name} is not a model: its configuration is {type(config).__name__}")
    if not allow_code:
        # What a model was compiled with is left alone, and never made.
        refuse_code({key: v for key, v in config.items() if key != "compile_config"}, custom)
    return config


def mended(config: Any) -> Any:
    """The configuration with three traps taken out, at any depth.

    A Sequential model without an InputLayer keeps its input shape in its first layer, where
    Keras 3 no longer looks; DepthwiseConv2D used to save a `groups` that it does not take; and a
    model inside the model would be compiled, which makes objects that nobody needs.
    """
    if isinstance(config, list):
        return [_uncompiled(mended(item)) for item in config]
    if not isinstance(config, Mapping):
        return config
    result = {key: _uncompiled(mended(value)) for key, value in config.items()}
    if result.get("class_name") == "DepthwiseConv2D" and result["config"].get("groups") == 1:
        del result["config"]["groups"]
    if result.get("class_name") == "Sequential" and "module" not in result:
        _give_input_layer(result)
    return result


def _uncompiled(inner: Any) -> Any:
    if isinstance(inner, dict) and "class_name" in inner:
        inner.pop("compile_config", None)
    return inner


def _give_input_layer(sequential: dict[str, Any]) -> None:
    inner = sequential["config"]
    layers = inner["layers"] if isinstance(inner, Mapping) else inner
    if not layers or layers[0]["class_name"] == "InputLayer":
        return
    first = layers[0]["config"]
    shape = first.pop("batch_input_shape", None) or first.pop("batch_shape", None)
    if layers[0]["class_name"] in ("Sequential", "Functional", "Model"):
        nested = next(item for item in first["layers"] if item["class_name"] == "InputLayer")
        shape = nested["config"].get("batch_input_shape") or nested["config"].get("batch_shape")
    if shape is None and isinstance(inner, Mapping):
        shape = inner.get("build_input_shape")
    if shape is None:
        raise Refused(
            "the Sequential model in the file has never been built and names no input shape; "
            "build it and save it again"
        )
    dtype = first.get("dtype", "float32")
    config = {
        "batch_input_shape": list(shape),
        "dtype": dtype if isinstance(dtype, str) else "float32",
        "name": f"{first.get('name', 'first')}_input",
    }
    if layers[0]["class_name"] == "Embedding":
        config["dtype"] = first.get("input_dtype", "int32")
    layers.insert(0, {"class_name": "InputLayer", "config": config})
