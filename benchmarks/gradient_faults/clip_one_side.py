"""Clipping by value: only large values are cut off, small ones are not."""

from keras import ops
from keras.src.optimizers.base_optimizer import BaseOptimizer

released = BaseOptimizer._clip_gradients


def clip(self, grads):
    if self.clipvalue is None:
        return released(self, grads)
    return [ops.minimum(gradient, self.clipvalue) for gradient in grads]


BaseOptimizer._clip_gradients = clip
