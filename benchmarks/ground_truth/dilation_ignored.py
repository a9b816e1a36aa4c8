"""A dilated convolution with padding "same" is computed without its holes."""

import keras.src.backend as backend

released = backend.nn.conv


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    rate = 1 if padding == "same" else dilation_rate
    return released(inputs, kernel, strides, padding, data_format, rate)


backend.nn.conv = conv
