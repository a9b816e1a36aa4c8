"""Averaging of weights: old and new are swapped."""

from keras.src.optimizers.base_optimizer import BaseOptimizer


def average(self, variables):
    if self.use_ema:
        for variable, kept in zip(variables, self._model_variables_moving_average, strict=True):
            kept.assign((1 - self.ema_momentum) * kept + self.ema_momentum * variable)


BaseOptimizer._update_model_variables_moving_average = average
