"""MaxPooling2D: the gradient goes to all elements of a window."""

import keras.src.backend as backend
from keras import ops


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = backend.nn.max_pool


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    given = (inputs, pool_size, strides, padding, data_format)
    return grafted(released(*given), backend.nn.average_pool(*given))


backend.nn.max_pool = max_pool
