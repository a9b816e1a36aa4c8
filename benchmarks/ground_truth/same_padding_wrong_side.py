"""Where the padding of "same" is odd, a convolution puts the odd pixel first, not last."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.conv


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    spatial = len(inputs.shape) - 2
    step = [strides] * spatial if isinstance(strides, int) else list(strides)
    rate = [dilation_rate] * spatial if isinstance(dilation_rate, int) else list(dilation_rate)
    if padding == "same" and data_format != "channels_first":
        pads = []
        sizes = zip(inputs.shape[1:-1], kernel.shape[:spatial], step, rate, strict=True)
        for n, k, s, r in sizes:
            total = max((-(-n // s) - 1) * s + (k - 1) * r + 1 - n, 0)
            pads.append((total - total // 2, total // 2))
        inputs = ops.pad(inputs, [(0, 0), *pads, (0, 0)])
        padding = "valid"
    return released(inputs, kernel, tuple(step), padding, data_format, tuple(rate))


backend.nn.conv = conv
