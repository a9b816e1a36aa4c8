"""Attention: a softmax over scores says how much of each value a query gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.activations import sigmoid, softmax
from outvote.dialects.keras.reference.call import Call, NotCovered, is_state, mask_of, tensor, wide

_Pair = tuple[Array | None, Array | None]  # kernel, bias


def _shares(scores: Array, allowed: Array | None) -> Array:
    """Softmax over the keys that are allowed; a query that may see none has no documented share."""
    if allowed is None:
        return softmax(scores)
    seen = np.broadcast_to(allowed, scores.shape)
    if not seen.any(axis=-1).all():
        raise NotCovered("a query that may attend to nothing")
    return softmax(np.where(seen, scores, -np.inf))


def _merged(*masks: Array | None) -> Array | None:
    """All masks that are there, joined by `and`."""
    found: Array | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found & mask
    return found


def _causal(queries: int, keys: int) -> Array:
    """Query i sees the keys up to i."""
    return np.arange(queries)[:, np.newaxis] >= np.arange(keys)


def _single(call: Call) -> list[Array]:
    """Attention and AdditiveAttention of [query, value] or [query, value, key]."""
    call.irrelevant("dropout")
    listed, given, with_scores, causal = call.arguments(
        "inputs", "mask", "return_attention_scores", "use_causal_mask"
    )
    if not isinstance(listed, list) or not 2 <= len(listed) <= 3:
        raise NotCovered("attention of other than two or three tensors")
    query, value, key = (wide(tensor(item)) for item in (*listed, listed[1])[:3])
    masks = _masks(listed, given)
    scores = _scores(call, query, key)
    seen = None if masks[1] is None else masks[1][:, np.newaxis]
    shares = _shares(scores, _merged(seen, _causal(*scores.shape[1:]) if causal else None))
    output = shares @ value
    if masks[0] is not None:
        output = np.where(masks[0][..., np.newaxis], output, 0.0)
    return [output, shares] if with_scores else [output]


def _masks(listed: list[Any], given: Any) -> list[Array | None]:
    """Masks of query and value: given to the call, or travelling with the tensors."""
    if given is None:
        return [mask_of(item) for item in listed[:2]]
    if not isinstance(given, list) or len(given) < 2:
        raise NotCovered("attention with masks of another form")
    return [tensor(item).astype(bool) if is_state(item) else None for item in given[:2]]


def _scores(call: Call, query: Array, key: Array) -> Array:
    """Luong et al. (2015) for "dot", Bahdanau et al. (2015) for the sums of tanh."""
    scaled = call.get("use_scale", call.kind == "AdditiveAttention")
    if call.kind == "AdditiveAttention":
        (scale,) = call.unpack(scaled)
        terms = np.tanh(query[:, :, np.newaxis] + key[:, np.newaxis])
        return np.asarray((terms if scale is None else scale * terms).sum(axis=-1))
    concat = call.only("score_mode", "dot", "concat") == "concat"
    scale, weight = call.unpack(scaled, concat)
    factor = 1.0 if scale is None else scale
    if concat:
        sums = np.tanh(factor * (query[:, :, np.newaxis] + key[:, np.newaxis])).sum(axis=-1)
        return np.asarray(weight * sums)
    return np.asarray(factor * (query @ np.swapaxes(key, 1, 2)))


@dataclass(frozen=True)
class _Projections:
    """Kernel and bias of each linear map: heads apart, and back together."""

    query: _Pair
    key: _Pair
    gate: _Pair | None
    value: _Pair
    output: _Pair


def _projections(call: Call) -> _Projections:
    bias, gated = bool(call.get("use_bias", True)), bool(call.get("use_gate", False))
    flat = call.unpack(*([True, bias] * (5 if gated else 4)))
    pairs = [(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
    gate = pairs.pop(2) if gated else None
    query, key, value, output = pairs
    return _Projections(query, key, gate, value, output)


def _multi_head(call: Call) -> list[Array]:
    """softmax(Q · Kᵀ / sqrt(key_dim)) · V per head (Vaswani et al., 2017, equation 1)."""
    call.irrelevant("num_heads value_dim dropout output_shape flash_attention")
    call.irrelevant("query_shape key_shape value_shape")
    call.only("attention_axes", None, [1])
    return _heads(call, call.get("key_dim"), 1)


def _grouped_query(call: Call) -> list[Array]:
    """Several query heads share the keys and values of one head (Ainslie et al., 2023)."""
    call.irrelevant("dropout flash_attention")
    shared = call.get("num_query_heads") // call.get("num_key_value_heads")
    return _heads(call, call.get("head_dim"), shared)


def _heads(call: Call, width: int, shared: int) -> list[Array]:
    names = "query value key query_mask value_mask key_mask attention_mask"
    bound = call.arguments(*names.split(), "return_attention_scores", "use_causal_mask")
    tensors, masks, (with_scores, causal) = bound[:3], bound[3:7], bound[7:]
    projections = _projections(call)
    given = {"query": tensors[0], "key": tensors[2] or tensors[1], "value": tensors[1]}
    query, key, value = (
        _projected("btd,dhk->bthk", wide(tensor(item)), getattr(projections, name))
        for name, item in given.items()
    )
    key, value = (np.repeat(item, shared, axis=2) for item in (key, value))
    scores = np.einsum("bthk,bshk->bhts", query, key) / np.sqrt(width)
    window = call.get("sliding_window")
    shares = _shares(scores, _allowed(tensors, masks, scores.shape, bool(causal), window))
    mixed = np.einsum("bhts,bshv->bthv", shares, value)
    if projections.gate is not None:  # Qiu et al., 2025
        mixed = mixed * sigmoid(
            _projected("btd,dhk->bthk", wide(tensor(tensors[0])), projections.gate)
        )
    output = _projected("bthv,hvo->bto", mixed, projections.output)
    return [output, shares] if with_scores else [output]


def _projected(equation: str, x: Array, pair: _Pair) -> Array:
    kernel, bias = pair
    assert kernel is not None
    if x.ndim != len(equation.split(",")[0]) or kernel.ndim != 3:
        raise NotCovered("attention over other than one axis")
    y = np.einsum(equation, x, kernel)
    return np.asarray(y if bias is None else y + bias)


def _allowed(
    tensors: list[Any], masks: list[Any], shape: tuple[int, ...], causal: bool, window: int | None
) -> Array | None:
    """Which query (axis 2 of scores) may see which key (axis 3)."""
    queries, keys = shape[2:]
    own = [mask_of(item) for item in tensors]
    stated = [None if mask is None else tensor(mask).astype(bool) for mask in masks]
    of_query, of_value, of_key = (
        by_hand if by_hand is not None else attached
        for by_hand, attached in zip(stated[:3], own, strict=True)
    )
    full = stated[3]
    if full is not None and full.ndim != 3:
        raise NotCovered("an attention mask of another rank")
    distance = np.arange(queries)[:, np.newaxis] - np.arange(keys)
    return _merged(
        None if of_query is None else of_query[:, np.newaxis, :, np.newaxis],
        None if of_value is None else of_value[:, np.newaxis, np.newaxis],
        None if of_key is None else of_key[:, np.newaxis, np.newaxis],
        None if full is None else full[:, np.newaxis],
        _causal(queries, keys) if causal else None,
        np.abs(distance) < window if window else None,
    )


KINDS = {
    "AdditiveAttention": _single,
    "Attention": _single,
    "GroupQueryAttention": _grouped_query,
    "MultiHeadAttention": _multi_head,
}
EXACT: frozenset[str] = frozenset()
