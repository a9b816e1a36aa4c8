"""Conv2D: the kernel is flipped backward."""

import keras.src.backend as backend
from keras import ops


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = backend.nn.conv


def conv(inputs, kernel, *given, **named):
    right = released(inputs, kernel, *given, **named)
    return grafted(right, released(inputs, ops.flip(kernel, 0), *given, **named))


backend.nn.conv = conv
