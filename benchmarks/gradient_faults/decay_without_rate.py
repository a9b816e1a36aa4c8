"""Weight decay: it is not scaled by the learning rate."""

from keras.src.optimizers.base_optimizer import BaseOptimizer


def decay(self, variables):
    if self.weight_decay is not None:
        for variable in variables:
            variable.assign(variable - variable * self.weight_decay)


BaseOptimizer._apply_weight_decay = decay
