"""Scaled dot product attention, by the text of Attention in opset 25, which 23 and 24 precede."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered


def _heads(x: Array, count: int | None) -> Array:
    """(batch, head, place, size); heads of three dimensions lie one behind the other."""
    if x.ndim == 4:
        return x
    if x.ndim != 3 or not count or x.shape[2] % count:
        raise Uncovered("heads that cannot be told apart")
    return np.moveaxis(x.reshape(*x.shape[:2], count, -1), 2, 1)


def _with_past(call: NodeCall, place: int, now: Array) -> Array:
    past = call.arg(place)
    return now if past is None else np.concatenate([past, now], axis=2)


def _bias(call: NodeCall, shape: tuple[int, ...]) -> Array:
    """What is added to scores: nothing, a mask of numbers, or minus infinity for False.

    Since opset 24 a mask may be too short, and is made longer by minus infinity.
    """
    mask = call.arg(3)
    if mask is None:
        return np.zeros(shape)
    added = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask
    missing = shape[-1] - added.shape[-1]
    if missing and (added.shape[-1] == 1 or call.opset < 24):
        raise Uncovered("a mask that could be repeated as well as made longer")
    widths = [(0, 0)] * (added.ndim - 1) + [(0, missing)]
    return np.broadcast_to(np.pad(added, widths, constant_values=-np.inf), shape)


def _is_seen(call: NodeCall, shape: tuple[int, ...]) -> Array:
    """Which keys a query may attend to, whatever the mask says: (batch, 1, query, key)."""
    past, valid = call.arg(4), call.arg(6)
    batch, _, queries, keys = shape
    key = np.arange(keys)
    seen = np.ones((batch, 1, queries, keys), bool)
    offset = np.zeros(batch, np.int64)
    if past is not None:
        offset += past.shape[2]
    elif valid is not None:
        offset = valid.reshape(-1) - queries
        seen &= key < valid.reshape(-1, 1, 1, 1)
    place = offset[:, None, None, None] + np.arange(queries)[:, None]
    left, right = (int(call.get(f"{side}_window_size", -1)) for side in ("left", "right"))
    if call.get("is_causal", 0):
        seen &= key <= place
    if left >= 0:
        seen &= key >= place - left
    if right >= 0:
        seen &= key <= place + right
    return seen


def _softmax(scores: Array) -> Array:
    """Along the keys; where none may be attended to, zeros."""
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise Uncovered("attention to infinity or NaN")
    most = scores.max(axis=-1, keepdims=True)
    none = np.isneginf(most)
    raised = np.exp(scores - np.where(none, 0.0, most))
    return np.asarray(raised / np.where(none, 1.0, raised.sum(axis=-1, keepdims=True)))


def _attention(call: NodeCall) -> list[Array]:
    """softmax(softcap(scale · Q · K') + bias) · V, and what it is made of.

    The fourth output is the scores as they are, capped, with the bias, or behind the softmax.
    """
    if (call.arg(4) is None) != (call.arg(5) is None):
        raise Uncovered("a past of keys or values alone")
    if call.arg(4) is None and {1, 2} & set(call.outputs):
        raise Uncovered("a present without a past")
    call.get("softmax_precision")
    kv_heads = call.get("kv_num_heads")
    q = _heads(call.floats(0), call.get("q_num_heads"))
    k = _with_past(call, 4, _heads(call.floats(1), kv_heads))
    v = _with_past(call, 5, _heads(call.floats(2), kv_heads))
    if q.shape[1] % k.shape[1]:
        raise Uncovered("heads that cannot be shared evenly")
    shared = q.shape[1] // k.shape[1]
    scale, cap = call.get("scale"), call.get("softcap", 0.0)
    raw = q @ np.swapaxes(np.repeat(k, shared, axis=1), 2, 3)
    raw = raw * (q.shape[3] ** -0.5 if scale is None else scale)
    capped = cap * np.tanh(raw / cap) if cap else raw
    scores = np.where(_is_seen(call, raw.shape), capped + _bias(call, raw.shape), -np.inf)
    weights = _softmax(scores)
    y = weights @ np.repeat(v, shared, axis=1)
    if call.need(0).ndim == 3:
        y = np.moveaxis(y, 1, 2).reshape(*call.need(0).shape[:2], -1)
    mode = int(call.only("qk_matmul_output_mode", 0, 1, 2, 3))
    return [y, k, v, (raw, capped, scores, weights)[mode]]


OPERATORS = {"Attention": _attention}
