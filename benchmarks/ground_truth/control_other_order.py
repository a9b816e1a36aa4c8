"""No fault: products of matrices are summed in another order, which rounds differently."""

import keras.src.backend as backend

released = backend.numpy.matmul


def matmul(x1, x2):
    if len(x2.shape) != 2:
        return released(x1, x2)
    y = 0
    for start in range(0, x2.shape[0], 3):
        y = y + released(x1[..., start : start + 3], x2[start : start + 3])
    return y


backend.numpy.matmul = matmul
