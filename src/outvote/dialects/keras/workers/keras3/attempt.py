"""Tries a layer with parameters that should be refused, on real tensors (AUDEE, section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
from keras import tree

from outvote.core.arrays import Array
from outvote.core.protocol import AttemptLayer, LayerAttempted
from outvote.dialects.keras.workers.keras3.catalogue import instance
from outvote.worker.main import Context

_FREE = 2


def attempt(context: Context, request: AttemptLayer) -> LayerAttempted:
    """Make the layer and call it; what is not refused says what came out.

    A refusal is an exception and becomes the outcome of the run. Nothing is caught here.
    """
    context.begin(1)
    context.enter(request.kind)
    layer = instance(request.kind, request.parameters)
    filled = [_filled(shape, dtype) for shape, dtype in request.given]
    tensors = [keras.ops.convert_to_tensor(array) for array in filled]
    outputs = tree.flatten(layer(tensors) if request.joined else layer(*tensors))
    shapes = [list(np.shape(keras.ops.convert_to_numpy(tensor))) for tensor in outputs]
    context.step()
    return LayerAttempted(shapes=shapes)


def _filled(shape: Sequence[int | None], dtype: str) -> Array:
    sizes = [_FREE if n is None else n for n in shape]
    if "float" not in dtype:
        return np.ones(sizes, dtype)
    return np.random.default_rng(0).normal(size=sizes).astype("float32")
