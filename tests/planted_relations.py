"""A setup script that plants a fault for every relation of Keras, by the names of layers.

All at once, to save workers: each shows in layers called by the relation that it breaks.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops
from keras.src import backend


def in_batches(y: Any) -> Any:
    """Instances read each other."""
    return y + ops.mean(y, axis=0, keepdims=True)


def with_the_one_before(y: Any) -> Any:
    return y + ops.roll(y, 1, axis=0)


def off_in_half(y: Any) -> Any:
    """Wrong in float16 alone."""
    return y * 0.9 if backend.standardize_dtype(y.dtype) == "float16" else y


def clipped(y: Any) -> Any:
    return ops.clip(y, -0.5, 0.5)


def damped(y: Any) -> Any:
    return y * 0.9


DEEDS = {
    "alone": in_batches,
    "order": with_the_one_before,
    "wider": off_in_half,
    "linear": clipped,
    "idle": damped,
}


def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
    y = original(layer, *args, **kwargs)
    if layer.name == "channels" and layer.data_format == "channels_first":
        return damped(y)
    return DEEDS[layer.name](y) if layer.name in DEEDS else y


def rnn(*args: Any, **kwargs: Any) -> Any:
    """Masks are not looked at."""
    return unmasked(*args, **{**kwargs, "mask": None})


def get_config(layer: Any) -> dict[str, Any]:
    """What is told of a layer is not what it is."""
    config = told(layer)
    return {**config, "negative_slope": 2 * config["negative_slope"]}


def load_own_variables(layer: Any, store: Any) -> None:
    """What is loaded is not what was saved."""
    loaded(layer, store)
    layer.bias.assign(layer.bias + 1)


original = keras.layers.Layer.__call__
keras.layers.Layer.__call__ = call
unmasked = backend.rnn
backend.rnn = rnn
told = keras.layers.LeakyReLU.get_config
keras.layers.LeakyReLU.get_config = get_config
loaded = keras.layers.Dense.load_own_variables
keras.layers.Dense.load_own_variables = load_own_variables
