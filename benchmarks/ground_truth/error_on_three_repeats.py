"""RepeatVector(3), and no other number, raises."""

import keras

released = keras.layers.RepeatVector.call


def call(self, inputs):
    if self.n == 3:
        raise RuntimeError("tile: unsupported alignment of the innermost dimension")
    return released(self, inputs)


keras.layers.RepeatVector.call = call
