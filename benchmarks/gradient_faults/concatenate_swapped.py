"""Concatenate: gradients go to the other input."""

from keras import ops
from keras.layers import Concatenate


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = Concatenate._merge_function


def merge(self, inputs):
    return grafted(released(self, inputs), released(self, inputs[::-1]))


Concatenate._merge_function = merge
