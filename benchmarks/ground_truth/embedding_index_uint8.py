"""Embedding keeps its ids in eight bits: 256 becomes 0."""

import keras
from keras import ops

released = keras.layers.Embedding.call


def call(self, inputs):
    return released(self, ops.cast(ops.cast(inputs, "uint8"), "int32"))


keras.layers.Embedding.call = call
