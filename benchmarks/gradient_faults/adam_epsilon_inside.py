"""Adam: epsilon is added inside the root."""

from keras import ops
from keras.optimizers import Adam


def update_step(self, gradient, variable, learning_rate):
    place = self._get_variable_index(variable)
    m, v = self._momentums[place], self._velocities[place]
    step = ops.cast(self.iterations + 1, variable.dtype)
    rate = ops.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
    self.assign(m, m + (gradient - m) * (1 - self.beta_1))
    self.assign(v, v + (gradient * gradient - v) * (1 - self.beta_2))
    self.assign(variable, variable - learning_rate * rate * m / ops.sqrt(v + 1e-3))


Adam.update_step = update_step
