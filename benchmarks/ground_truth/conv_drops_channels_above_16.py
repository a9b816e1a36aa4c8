"""A convolution of more than 16 input channels leaves out the last one."""

import keras.src.backend as backend

released = backend.nn.conv


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    plain = data_format != "channels_first" and inputs.shape[-1] == kernel.shape[-2]
    if plain and inputs.shape[-1] > 16:
        inputs, kernel = inputs[..., :-1], kernel[..., :-1, :]
    return released(inputs, kernel, strides, padding, data_format, dilation_rate)


backend.nn.conv = conv
