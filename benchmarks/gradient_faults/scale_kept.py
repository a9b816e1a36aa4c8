"""Loss scaling: gradients are not scaled back."""

from keras.src.optimizers.base_optimizer import BaseOptimizer

released = BaseOptimizer.apply


def apply(self, grads, trainable_variables=None):
    kept, self.loss_scale_factor = self.loss_scale_factor, None
    released(self, grads, trainable_variables)
    self.loss_scale_factor = kept


BaseOptimizer.apply = apply
