"""MeanSquaredError: the gradient lacks the factor 2."""

from keras import ops
from keras.src.losses import losses


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = losses.mean_squared_error


def mean_squared_error(y_true, y_pred):
    y = released(y_true, y_pred)
    return grafted(y, 0.5 * y)


losses.mean_squared_error = mean_squared_error
