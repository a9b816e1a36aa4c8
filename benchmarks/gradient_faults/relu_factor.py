"""Relu: the gradient lacks a factor."""

import keras.src.backend as backend
from keras import ops


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = backend.nn.relu


def relu(x):
    y = released(x)
    return grafted(y, 0.5 * y)


backend.nn.relu = relu
