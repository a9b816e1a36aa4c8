"""Clipping by norm: the norm is the sum of the sizes."""

from keras import ops
from keras.src.optimizers.base_optimizer import BaseOptimizer


def clip(self, values, axes=None):
    size = ops.sum(ops.abs(values))
    return values * self.clipnorm / ops.maximum(size, self.clipnorm)


BaseOptimizer._clip_by_norm = clip
