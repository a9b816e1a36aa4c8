"""Batch normalisation divides by sqrt(variance) + epsilon (CRADLE, figure 2c)."""

import keras.src.backend as backend
from keras import ops


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    shape = [1] * len(x.shape)
    shape[axis] = mean.shape[0]
    y = (x - ops.reshape(mean, shape)) / (ops.sqrt(ops.reshape(variance, shape)) + epsilon)
    if scale is not None:
        y = y * ops.reshape(scale, shape)
    if offset is not None:
        y = y + ops.reshape(offset, shape)
    return y


backend.nn.batch_normalization = batch_normalization
