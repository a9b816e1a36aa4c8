"""A convolution with strides starts one element late, and reads the first one last."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.conv


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    step = strides if isinstance(strides, int) else max(strides)
    if step > 1 and data_format != "channels_first":
        inputs = ops.roll(inputs, -1, axis=1)
    return released(inputs, kernel, strides, padding, data_format, dilation_rate)


backend.nn.conv = conv
