"""Gelu: the gradient is that of the approximation by tanh."""

import keras.src.backend as backend
from keras import ops


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = backend.nn.gelu


def gelu(x, approximate=True):
    return grafted(released(x, approximate), released(x, not approximate))


backend.nn.gelu = gelu
