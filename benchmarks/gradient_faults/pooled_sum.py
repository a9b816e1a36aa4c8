"""GlobalAveragePooling2D: the gradient is that of a sum."""

from keras import ops
from keras.layers import GlobalAveragePooling2D


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = GlobalAveragePooling2D.call


def call(self, inputs):
    y = released(self, inputs)
    return grafted(y, 4.0 * y)


GlobalAveragePooling2D.call = call
