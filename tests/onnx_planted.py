"""Faults planted in the kernels of ONNX' reference implementation; each is in another operator."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
from onnx.reference.ops.op_abs import Abs
from onnx.reference.ops.op_erf import Erf
from onnx.reference.ops.op_neg import Neg
from onnx.reference.ops.op_relu import Relu
from onnx.reference.ops.op_softmax import Softmax
from onnx.reference.ops.op_string_concat import StringConcat
from onnx.reference.ops.op_transpose import Transpose


def relu(self: Any, x: Any) -> Any:
    """Leaks."""
    return (np.where(x > 0, x, x * np.array(0.01, x.dtype)).astype(x.dtype),)


def softmax(self: Any, x: Any, axis: int | None = None) -> Any:
    """Ignores its axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return ((raised / raised.sum(axis=-1, keepdims=True)).astype(x.dtype),)


def transpose(self: Any, data: Any, perm: Any = None) -> Any:
    """Forgets the permutation, and with it the shape."""
    return (np.transpose(data),)


def raises(self: Any, *x: Any) -> Any:
    raise RuntimeError("this kernel is broken")


def dies(self: Any, x: Any) -> Any:
    ctypes.string_at(0)


def hangs(self: Any, x: Any) -> Any:
    time.sleep(3600)


def joined(self: Any, x: Any, y: Any) -> Any:
    """Forgets the second text."""
    return (np.array([str(one) for one in x.reshape(-1)]).reshape(x.shape),)


Relu._run = relu
StringConcat._run = joined
Softmax._run = softmax
Transpose._run = transpose
Erf._run = raises
Abs._run = dies
Neg._run = hangs
