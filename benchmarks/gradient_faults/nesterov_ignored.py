"""SGD: Nesterov's look ahead is left out."""

from keras.optimizers import SGD

released = SGD.update_step


def update_step(self, gradient, variable, learning_rate):
    kept, self.nesterov = self.nesterov, False
    released(self, gradient, variable, learning_rate)
    self.nesterov = kept


SGD.update_step = update_step
