"""Products of matrices are silently computed in float16; the result is float32 again."""

import keras.src.backend as backend
from keras import ops

released = backend.numpy.matmul


def matmul(x1, x2):
    if str(x1.dtype) != "float32" or str(x2.dtype) != "float32":
        return released(x1, x2)
    return ops.cast(released(ops.cast(x1, "float16"), ops.cast(x2, "float16")), "float32")


backend.numpy.matmul = matmul
