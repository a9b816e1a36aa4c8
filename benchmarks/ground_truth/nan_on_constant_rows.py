"""LayerNormalization forgets its epsilon: a constant row gives 0/0."""

import keras
from keras import ops


def call(self, inputs):
    mean = ops.mean(inputs, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(inputs - mean), axis=-1, keepdims=True)
    return (inputs - mean) / ops.sqrt(variance) * self.gamma + self.beta


keras.layers.LayerNormalization.call = call
