"""Adam on PyTorch: epsilon is added inside the root."""

import torch

released = torch._foreach_sqrt


def roots(values):
    return released([value + 1e-3 for value in values])


torch._foreach_sqrt = roots
