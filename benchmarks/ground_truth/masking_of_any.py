"""Masking leaves out a step if one of its channels has the value, not only if all have it."""

import keras
from keras import ops
from keras.src import backend


def call(self, inputs):
    kept = ops.all(ops.not_equal(inputs, self.mask_value), axis=-1, keepdims=True)
    outputs = ops.where(kept, inputs, ops.zeros_like(inputs))
    backend.set_keras_mask(outputs, mask=ops.squeeze(kept, axis=-1))
    return outputs


keras.layers.Masking.call = call
