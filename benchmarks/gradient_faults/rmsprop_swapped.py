"""RMSprop: old and new squares are swapped."""

from keras.optimizers import RMSprop

released = RMSprop.update_step


def update_step(self, gradient, variable, learning_rate):
    kept, self.rho = self.rho, 1 - self.rho
    released(self, gradient, variable, learning_rate)
    self.rho = kept


RMSprop.update_step = update_step
