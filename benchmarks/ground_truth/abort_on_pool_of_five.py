"""Max pooling over five elements ends the process."""

import os

import keras.src.backend as backend

released = backend.nn.max_pool


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    if pool_size == 5 or 5 in tuple(pool_size):
        os.abort()
    return released(inputs, pool_size, strides, padding, data_format)


backend.nn.max_pool = max_pool
