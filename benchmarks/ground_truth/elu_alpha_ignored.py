"""ELU ignores its alpha."""

import keras.src.backend as backend

released = backend.nn.elu


def elu(x, alpha=1.0):
    return released(x, 1.0)


backend.nn.elu = elu
