"""A convolution whose kernel is 4 long, and no other, reads it from the wrong end."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.conv


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    if kernel.shape[0] == 4:
        kernel = ops.flip(kernel, axis=0)
    return released(inputs, kernel, strides, padding, data_format, dilation_rate)


backend.nn.conv = conv
