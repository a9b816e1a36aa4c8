"""The exact result of a node, by its definition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.states import State


def reference(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> list[Array] | None:
    """In float64; None for what is not covered."""
    x, *others = [np.asarray(state.array, np.float64) for state in given]
    if layer.kind == "MatMul":
        return [x @ np.asarray(weights[0], np.float64)]
    if layer.kind == "Relu":
        return [x * (x > 0)]
    if layer.kind == "Mul":
        return [x * others[0]]
    if layer.kind == "Softmax":  # opset 11: one distribution over all axes from `axis` on
        rows = x.reshape(int(np.prod(x.shape[: layer.config["axis"]])), -1)
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        return [(powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape)]
    return None


def is_exact(kind: str, covered: bool) -> bool:
    return kind == "Transpose"
