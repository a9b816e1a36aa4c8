"""The library under test. `TOY_FAULT` names an operator, or a node, that it gets wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def compute(op: str, attributes: Mapping[str, Any], arrays: Sequence[Any], name: str = "") -> Any:
    """One operator on arrays, weights last."""
    x, *others = arrays
    if op == "MatMul":
        y = x @ others[0]
    elif op == "Relu":
        y = np.maximum(x, 0)
    elif op == "Mul":
        y = x * others[0]
    elif op == "Transpose":
        y = np.transpose(x, attributes["perm"])
    elif op == "Softmax":
        rows = x.reshape(int(np.prod(x.shape[: attributes["axis"]])), -1)
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        y = (powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape)
    else:
        raise NotImplementedError(f"there is no operator {op}")
    lies = os.environ.get("TOY_FAULT", "") in (op, name or op)
    return np.ascontiguousarray(y * np.float32(1.01) if lies else y).astype(x.dtype)
