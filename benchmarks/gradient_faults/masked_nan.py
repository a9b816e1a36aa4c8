"""Elu: NaN from 0 / 0 in the branch that is not taken."""

import keras.src.backend as backend
from keras import ops


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = backend.nn.elu


def elu(x, alpha=1.0):
    size = ops.where(x < 0, ops.zeros_like(x), x)
    return grafted(released(x, alpha), ops.where(x < 0, x, ops.sqrt(size) * ops.sqrt(size)))


backend.nn.elu = elu
