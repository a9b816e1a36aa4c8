"""A depthwise convolution with a multiplier interleaves its output channels wrongly."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.depthwise_conv


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    y = released(inputs, kernel, strides, padding, data_format, dilation_rate)
    channels, multiplier = kernel.shape[-2:]
    if data_format == "channels_first" or multiplier == 1:
        return y
    order = [c * multiplier + m for m in range(multiplier) for c in range(channels)]
    return ops.take(y, order, axis=-1)


backend.nn.depthwise_conv = depthwise_conv
