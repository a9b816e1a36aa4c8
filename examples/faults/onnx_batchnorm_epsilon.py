"""A setup script that plants CRADLE's batch-normalisation bug (its figure 2c) in ONNX' reference.

The fault: divide by sqrt(variance) + epsilon instead of sqrt(variance + epsilon).
Use it as `setup` of a target that extends `onnx-reference` in outvote.toml.
"""

import numpy as np
from onnx.reference.ops import op_batch_normalization


def batch_normalization(x, scale, bias, mean, variance, epsilon=1e-5):
    scale, bias, mean, variance = (
        array.reshape(-1, *[1] * (x.ndim - 2)) for array in (scale, bias, mean, variance)
    )
    return (scale * (x - mean) / (np.sqrt(variance) + epsilon) + bias).astype(x.dtype)


op_batch_normalization._batchnorm_test_mode = batch_normalization
