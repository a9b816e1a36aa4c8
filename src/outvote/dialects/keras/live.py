"""Layers and functions of Keras in the user's process, as models that workers can read.

Keras is not imported: whoever holds a layer has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.target import Target


def saved_call(live: Any, inputs: Sequence[Array], path: Path) -> Path | None:
    """The model that calls a layer, or a function of keras.ops, with tensors like these."""
    keras = sys.modules.get("keras")
    if keras is None or not callable(live) or _is_of_torch(keras, live):
        return None
    if not inputs:
        raise UsageError(f"{_name(live)} needs `inputs`: an array, or one per argument in a list")
    symbols = [keras.Input(array.shape[1:], dtype=str(array.dtype)) for array in inputs]
    listed = isinstance(live, keras.layers.Layer) and len(symbols) > 1  # as merging layers want it
    try:
        outputs = live(symbols) if listed else live(*symbols)
        file = path.with_suffix(".keras")
        keras.Model(symbols, outputs).save(file)
    except Exception as error:
        raise UsageError(
            f"{_name(live)} cannot be called with symbols of Keras, of which models are made: "
            f"{type(error).__name__}: {error}"
        ) from error
    return file


def _is_of_torch(keras: Any, live: Any) -> bool:
    """A module of PyTorch that is no layer of Keras: its own wing exports it."""
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(live, torch.nn.Module)
    return is_module and not isinstance(live, keras.layers.Layer)


def _name(live: Any) -> str:
    return str(getattr(live, "__qualname__", type(live).__name__))


def itself(path: Path) -> Target | None:
    """None: workers of Keras load what was saved as it is."""
    return None
