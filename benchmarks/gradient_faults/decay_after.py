"""Weight decay: it is applied after the update, not before."""

from keras.src.optimizers.base_optimizer import BaseOptimizer

plain, apply = BaseOptimizer._apply_weight_decay, BaseOptimizer._backend_update_step


def late(self, grads, variables, learning_rate):
    apply(self, grads, variables, learning_rate)
    if self.weight_decay is not None:
        plain(self, variables)


BaseOptimizer._apply_weight_decay = lambda self, variables: None
BaseOptimizer._backend_update_step = late
