"""A setup script that plants a softmax which overflows, in any backend.

The fault: exponentials are taken without subtracting the maximum first.
"""

import keras.src.backend as backend
from keras import ops


def softmax(x, axis=-1):
    e = ops.exp(x)
    return e / ops.sum(e, axis=axis, keepdims=True)


backend.nn.softmax = softmax
