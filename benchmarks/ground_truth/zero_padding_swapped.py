"""ZeroPadding2D puts at the bottom what belongs at the top."""

import keras
from keras import ops


def call(self, inputs):
    (top, bottom), sides = self.padding
    if self.data_format == "channels_first":
        return ops.pad(inputs, ((0, 0), (0, 0), (bottom, top), sides))
    return ops.pad(inputs, ((0, 0), (bottom, top), sides, (0, 0)))


keras.layers.ZeroPadding2D.call = call
