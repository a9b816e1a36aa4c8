"""Huber: the gradient of the linear part has no sign."""

from keras import ops
from keras.src.losses import losses


def grafted(value, other):
    """A value with the gradient of another."""
    return ops.stop_gradient(value) + (other - ops.stop_gradient(other))


released = losses.huber


def huber(y_true, y_pred, delta=1.0):
    y = released(y_true, y_pred, delta)
    far = ops.abs(y_pred - y_true) > delta
    return grafted(y, y + ops.mean(ops.where(far, y_pred, ops.zeros_like(y_pred)), axis=-1))


losses.huber = huber
