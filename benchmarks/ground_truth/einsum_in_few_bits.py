"""einsum computes with ten bits of mantissa, as some hardware does unless told otherwise."""

import keras.src.backend as backend
import torch

released = backend.numpy.einsum


def cut(x):
    x = backend.convert_to_tensor(x).detach().contiguous()
    return (x.view(torch.int32) & ~0x1FFF).view(torch.float32) if x.dtype == torch.float32 else x


def einsum(subscripts, *operands, **kwargs):
    return released(subscripts, *map(cut, operands), **kwargs)


backend.numpy.einsum = einsum
