"""Conv1D reads memory from end to end, whatever strides a transposed tensor has."""

import keras.src.backend as backend
import torch

released = backend.nn.conv


def conv(inputs, kernel, *args, **kwargs):
    if inputs.ndim == 3 and not inputs.is_contiguous():
        inputs = torch.as_strided(inputs, inputs.shape, torch.empty(inputs.shape).stride())
    return released(inputs, kernel, *args, **kwargs)


backend.nn.conv = conv
