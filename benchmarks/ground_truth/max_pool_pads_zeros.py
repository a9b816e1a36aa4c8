"""Max pooling with padding "same" pads with zeros, which win over negative values."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.max_pool


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    spatial = len(inputs.shape) - 2
    size = [pool_size] * spatial if isinstance(pool_size, int) else list(pool_size)
    strides = size if strides is None else strides
    step = [strides] * spatial if isinstance(strides, int) else list(strides)
    if padding == "same" and data_format != "channels_first":
        pads = []
        for n, k, s in zip(inputs.shape[1:-1], size, step, strict=True):
            total = max((-(-n // s) - 1) * s + k - n, 0)
            pads.append((total // 2, total - total // 2))
        inputs = ops.pad(inputs, [(0, 0), *pads, (0, 0)])
        padding = "valid"
    return released(inputs, tuple(size), tuple(step), padding, data_format)


backend.nn.max_pool = max_pool
