"""UpSampling2D: the gradient is a mean over the copies, not their sum."""

from keras import ops
from keras.layers import UpSampling2D


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = UpSampling2D.call


def call(self, inputs):
    y = released(self, inputs)
    return grafted(y, 0.25 * y)


UpSampling2D.call = call
