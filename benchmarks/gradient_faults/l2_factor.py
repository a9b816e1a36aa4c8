"""L2: the gradient lacks the factor 2."""

from keras import ops
from keras.regularizers import L2


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = L2.__call__


def call(self, x):
    y = released(self, x)
    return grafted(y, 0.5 * y)


L2.__call__ = call
