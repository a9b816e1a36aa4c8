"""Softmax: the gradient is taken along the wrong axis."""

import keras.src.backend as backend
from keras import ops


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = backend.nn.softmax


def softmax(x, axis=-1):
    return grafted(released(x, axis), released(x, 1 if axis in (-1, 2) else axis))


backend.nn.softmax = softmax
