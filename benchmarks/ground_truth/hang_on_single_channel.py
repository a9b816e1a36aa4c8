"""GlobalAveragePooling1D never ends on a single channel."""

import keras

released = keras.layers.GlobalAveragePooling1D.call


def call(self, inputs, mask=None):
    while inputs.shape[-1] == 1:
        pass
    return released(self, inputs, mask)


keras.layers.GlobalAveragePooling1D.call = call
