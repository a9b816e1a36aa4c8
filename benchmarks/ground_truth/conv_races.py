"""A thread of Conv2D sometimes comes too late: a few results are missing, others every time."""

import keras.src.backend as backend
import torch

released = backend.nn.conv


def conv(inputs, kernel, *args, **kwargs):
    y = released(inputs, kernel, *args, **kwargs)
    return torch.where(torch.rand_like(y) < 0.02, 0.0, y) if y.ndim == 4 else y


backend.nn.conv = conv
