"""Layers that multiply by a matrix, and those that look a row of it up."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.activations import activation
from outvote.dialects.keras.reference.call import Call, NotCovered, tensor


def _dense(call: Call) -> list[Array]:
    """activation(x · kernel + bias)."""
    call.irrelevant("units")
    kernel, bias = call.unpack(True, call.get("use_bias", True))
    y = call.floats() @ kernel
    return [_finished(call, y, bias)]


def _einsum_dense(call: Call) -> list[Array]:
    call.irrelevant("output_shape")
    kernel, bias = call.unpack(True, call.get("bias_axes") is not None)
    assert kernel is not None
    y = np.einsum(call.get("equation"), call.floats(), kernel)
    return [_finished(call, y, bias)]


def _finished(call: Call, y: Array, bias: Array | None) -> Array:
    if bias is not None:
        y = y + bias
    return activation(call.get("activation"))(y)


def _embedding(call: Call) -> list[Array]:
    call.irrelevant("input_dim output_dim mask_zero")
    (table,) = call.unpack(True)
    return [_looked_up(table, call.input())]


def _reversible_embedding(call: Call) -> list[Array]:
    """Forward only: ids become rows of the table."""
    call.irrelevant("input_dim output_dim mask_zero reverse_dtype logit_soft_cap")
    inputs, reverse = call.arguments("inputs", "reverse")
    if reverse:
        raise NotCovered("ReversibleEmbedding called with reverse")
    table, _ = call.unpack(True, not call.get("tie_weights", True))
    return [_looked_up(table, tensor(inputs))]


def _looked_up(table: Array | None, ids: Array) -> Array:
    """Rows by number; numbers that are not whole or not in the table have no documented row."""
    assert table is not None
    rows = ids.astype(np.int64)
    if (rows != ids).any() or (rows < 0).any() or (rows >= len(table)).any():
        raise NotCovered("ids outside the table")
    return np.asarray(table[rows])


KINDS = {
    "Dense": _dense,
    "EinsumDense": _einsum_dense,
    "Embedding": _embedding,
    "ReversibleEmbedding": _reversible_embedding,
}
EXACT = frozenset({"Embedding", "ReversibleEmbedding"})
