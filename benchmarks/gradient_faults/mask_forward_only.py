"""GlobalAveragePooling1D: the mask is ignored backward."""

from keras import ops
from keras.layers import GlobalAveragePooling1D


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = GlobalAveragePooling1D.call


def call(self, inputs, mask=None):
    return grafted(released(self, inputs, mask=mask), ops.mean(inputs, axis=1))


GlobalAveragePooling1D.call = call
