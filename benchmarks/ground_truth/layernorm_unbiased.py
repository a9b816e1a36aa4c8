"""Layer normalisation divides by the unbiased variance, n - 1 instead of n."""

import keras
from keras import ops

released = keras.layers.LayerNormalization.call


def call(self, inputs):
    y = released(self, inputs)
    n = inputs.shape[-1]
    return (y - self.beta) * ((n - 1) / n) ** 0.5 + self.beta if n > 1 else ops.copy(y)


keras.layers.LayerNormalization.call = call
