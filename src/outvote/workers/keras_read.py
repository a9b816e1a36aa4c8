"""Loads a model file with Keras, inside the worker's process."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from outvote.workers import keras_legacy
from outvote.workers.keras_graph import refuse_code, zeros_for_weights
from outvote.workers.main import Refused


def load(path: Path, weights: Path | None, custom: Mapping[str, Any], allow_code: bool) -> Any:
    """A Keras model from `.keras`, `.h5`/`.hdf5`, or a JSON architecture and a weights file."""
    try:
        with zeros_for_weights():
            if path.suffix == ".json":
                return _from_architecture(path, weights, custom, allow_code)
            if path.suffix in (".h5", ".hdf5"):
                return keras_legacy.load(path, custom, allow_code)
            if not allow_code:
                with zipfile.ZipFile(path) as archive:
                    refuse_code(json.loads(archive.read("config.json")), custom)
            return keras.saving.load_model(
                path, custom_objects=dict(custom), compile=False, safe_mode=not allow_code
            )
    except (Refused, NotImplementedError):
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if "subclass" in text.lower():
            raise Refused(
                f"{path.name} holds a subclassed model, which has no graph of layers; "
                "rebuild it with the functional API"
            ) from error
        if "custom object" in text.lower() or "could not locate" in text.lower():
            raise Refused(
                f"{path.name} holds an object that Keras does not know ({_first_line(text)}); "
                "give the file that defines it with --custom FILE.py"
            ) from error
        raise Refused(f"{path.name} could not be read as a model: {_first_line(text)}") from error


def _from_architecture(
    path: Path, weights: Path | None, custom: Mapping[str, Any], allow_code: bool
) -> Any:
    if weights is None:
        raise Refused(
            f"{path.name} is an architecture without weights; add --weights FILE "
            "(.weights.h5 or .h5)"
        )
    config = keras_legacy.mended(json.loads(path.read_text()))
    if not allow_code:
        refuse_code(config, custom)
    model = keras_legacy.model_of(config, custom, allow_code)
    keras_legacy.load_weights(model, weights)
    return model


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "..."
