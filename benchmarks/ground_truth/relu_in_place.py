"""ReLU writes over its input, which a skip connection reads again afterwards."""

import keras

released = keras.layers.ReLU.call


def call(self, inputs):
    return released(self, inputs) if inputs.requires_grad else inputs.relu_()


keras.layers.ReLU.call = call
