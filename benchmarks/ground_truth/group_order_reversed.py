"""A grouped convolution puts the results of its groups in the wrong order."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.conv


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    y = released(inputs, kernel, strides, padding, data_format, dilation_rate)
    last = data_format != "channels_first"
    groups = inputs.shape[-1 if last else 1] // kernel.shape[-2]
    if groups == 1 or not last:
        return y
    return ops.concatenate(ops.split(y, groups, axis=-1)[::-1], axis=-1)


backend.nn.conv = conv
