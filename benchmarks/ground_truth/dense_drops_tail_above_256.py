"""A product of matrices with more than 256 inner elements leaves out the last one."""

import keras.src.backend as backend

released = backend.numpy.matmul


def matmul(x1, x2):
    if len(x2.shape) == 2 and x2.shape[0] > 256:
        x1, x2 = x1[..., :-1], x2[:-1]
    return released(x1, x2)


backend.numpy.matmul = matmul
