"""Tries a layer with parameters that should be refused, on real tensors (AUDEE, section 2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import tree

from outvote.core.arrays import Array
from outvote.dialects.keras.workers.keras3.catalogue import instance
from outvote.worker.main import Context, Reply

_FREE = 2


def attempt(
    context: Context, kind: str, parameters: Mapping[str, Any], given: Sequence[Any], joined: bool
) -> Reply:
    """Make the layer and call it; what is not refused says what came out.

    A refusal is an exception and becomes the outcome of the run. Nothing is caught here.
    """
    context.begin(1)
    context.enter(kind)
    layer = instance(kind, parameters)
    tensors = [keras.ops.convert_to_tensor(_filled(shape, dtype)) for shape, dtype in given]
    outputs = tree.flatten(layer(tensors) if joined else layer(*tensors))
    shapes = [list(np.shape(keras.ops.convert_to_numpy(tensor))) for tensor in outputs]
    context.step()
    return {"shapes": shapes}, ()


def _filled(shape: Sequence[int | None], dtype: str) -> Array:
    sizes = [_FREE if n is None else n for n in shape]
    if "float" not in dtype:
        return np.ones(sizes, dtype)
    return np.random.default_rng(0).normal(size=sizes).astype("float32")
