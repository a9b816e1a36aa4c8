"""SELU uses its two constants with four digits."""

import keras.src.backend as backend
from keras import ops


def selu(x):
    return 1.051 * ops.elu(x, 1.673)


backend.nn.selu = selu
