"""Loads a model file with Keras, inside the worker's process."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from outvote.core.text import shortened
from outvote.dialects.keras.workers.keras3 import legacy as keras_legacy
from outvote.dialects.keras.workers.keras3.graph import zeros_for_weights
from outvote.dialects.keras.workers.keras3.hdf5 import opened
from outvote.worker.main import Refused


def load(path: Path, weights: Path | None, custom: Mapping[str, Any], allow_code: bool) -> Any:
    """A Keras model from `.keras`, `.h5`/`.hdf5`, or a JSON architecture and a weights file."""
    try:
        if path.suffix in (".h5", ".hdf5"):
            return keras_legacy.load(path, custom, allow_code)
        if path.suffix != ".json":
            return _from_archive(path, custom, allow_code)
        if weights is not None:
            return keras_legacy.from_architecture(path, weights, custom, allow_code)
        raise Refused(
            f"{path.name} is an architecture without weights; add --weights FILE "
            "(.weights.h5 or .h5)"
        )
    except Refused:
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
                f"{path.name} holds an object that Keras does not know ({shortened(text)}); "
                "give the file that defines it with --custom FILE.py"
            ) from error
        raise  # another backend may be able to


def _from_archive(path: Path, custom: Mapping[str, Any], allow_code: bool) -> Any:
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        text = archive.read("config.json")
        config = keras_legacy.read_config(text, path.name, custom, allow_code)
        # HDF5 jumps to and fro; in an archive each jump back reads from the beginning again.
        weights = Path(archive.extract("model.weights.h5", folder))
        with opened(weights, path.name) as (_, size):
            pass
    with tempfile.TemporaryDirectory() as folder, zeros_for_weights(size):
        return keras.saving.load_model(
            _mended_archive(path, Path(folder), config),
            custom_objects=dict(custom),
            compile=False,
            safe_mode=not allow_code,
        )


def _mended_archive(path: Path, folder: Path, config: Any) -> Path:
    """The `.keras` file, or a copy of it whose configuration Keras can read."""
    mended = keras_legacy.mended(config)
    if mended == config:
        return path
    copy = folder / "model.keras"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as target:
        for name in archive.namelist():
            changed = name == "config.json"
            target.writestr(name, json.dumps(mended) if changed else archive.read(name))
    return copy
