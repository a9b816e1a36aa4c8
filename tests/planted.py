"""A setup script that plants faults: those of examples/faults, and faults by a layer's name.

All at once, to save workers. A layer whose name begins with `twisted` gives other numbers on any
backend, whatever their type; one that is called `broken...` raises.
"""

from __future__ import annotations

import os
from typing import Any

import keras
from keras import ops, tree
from keras.src import backend

FAULTS: dict[str, str] = {}  # the texts of examples/faults, which conftest writes in here
PATCHED = ("tensorflow", "jax", "torch")  # the backends that the examples are written for

if os.environ["KERAS_BACKEND"] in PATCHED:
    for name, text in FAULTS.items():
        exec(compile(text, name, "exec"), {"__name__": name})


def twisted(tensor: Any) -> Any:
    dtype = backend.standardize_dtype(tensor.dtype)
    if dtype == "bool":
        changed = ops.logical_not(tensor)
    elif "float" in dtype:
        changed = tensor * ops.cast(1.25, dtype) + ops.cast(0.5, dtype)
    else:
        changed = tensor + ops.cast(1, dtype)
    backend.set_keras_mask(changed, backend.get_keras_mask(tensor))
    return changed


def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
    if layer.name.startswith("broken"):
        raise RuntimeError("this layer is broken")
    outputs = original(layer, *args, **kwargs)
    return tree.map_structure(twisted, outputs) if layer.name.startswith("twisted") else outputs


original = keras.layers.Layer.__call__
keras.layers.Layer.__call__ = call
