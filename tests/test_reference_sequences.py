"""Recurrent layers and attention of the reference, step by step and pair by pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.model import REF
from outvote.core.states import State
from reference_calls import SEEDS, computed, layer_of, listed, numbers, outputs_of_call

UNITS = 2
FEATURES = 3


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


# One step of each cell for one sample, by the papers' formulas


def simple_step(x: Array, h: Array, w: list[Array]) -> Array:
    kernel, recurrent, bias = w
    return np.array(
        [
            math.tanh(
                sum(x[i] * kernel[i, u] for i in range(len(x)))
                + sum(h[j] * recurrent[j, u] for j in range(UNITS))
                + bias[u]
            )
            for u in range(UNITS)
        ]
    )


def lstm_step(x: Array, h: Array, c: Array, w: list[Array]) -> tuple[Array, Array]:
    kernel, recurrent, bias = w
    new_h, new_c = np.zeros(UNITS), np.zeros(UNITS)
    for u in range(UNITS):
        gates = [
            x @ kernel[:, g * UNITS + u] + h @ recurrent[:, g * UNITS + u] + bias[g * UNITS + u]
            for g in range(4)
        ]
        i, f, candidate, o = gates
        new_c[u] = sigmoid(f) * c[u] + sigmoid(i) * math.tanh(candidate)
        new_h[u] = sigmoid(o) * math.tanh(new_c[u])
    return new_h, new_c


def gru_step(x: Array, h: Array, w: list[Array], reset_after: bool) -> Array:
    kernel, recurrent, bias = w
    inner, outer = (bias[0], bias[1]) if reset_after else (bias, np.zeros(3 * UNITS))
    part = [slice(g * UNITS, (g + 1) * UNITS) for g in range(3)]
    z = sigmoid(
        x @ kernel[:, part[0]] + inner[part[0]] + h @ recurrent[:, part[0]] + outer[part[0]]
    )
    r = sigmoid(
        x @ kernel[:, part[1]] + inner[part[1]] + h @ recurrent[:, part[1]] + outer[part[1]]
    )
    fed = x @ kernel[:, part[2]] + inner[part[2]]
    if reset_after:
        candidate = np.tanh(fed + r * (h @ recurrent[:, part[2]] + outer[part[2]]))
    else:
        candidate = np.tanh(fed + (r * h) @ recurrent[:, part[2]])
    return np.asarray(z * h + (1 - z) * candidate)


GATES = {"SimpleRNN": 1, "LSTM": 4, "GRU": 3}


def weights_of(kind: str, seed: int, config: Mapping[str, Any]) -> list[Array]:
    width = GATES[kind] * UNITS
    bias = (2, width) if kind == "GRU" and config.get("reset_after", True) else (width,)
    return [
        numbers(seed, FEATURES, width),
        numbers(seed + 1, UNITS, width),
        numbers(seed + 2, *bias),
    ]


def walked(
    kind: str,
    x: Array,
    weights: list[Array],
    config: Mapping[str, Any],
    mask: Array | None = None,
) -> tuple[Array, list[Array]]:
    """Every output and the last states of one sample; a masked step changes nothing."""
    order = list(range(len(x)))
    if config.get("go_backwards"):
        order.reverse()
    h, c = np.zeros(UNITS), np.zeros(UNITS)
    output = np.zeros(UNITS)
    outputs = []
    for step in order:
        if mask is None or mask[step]:
            if kind == "LSTM":
                h, c = lstm_step(x[step], h, c, weights)
            elif kind == "GRU":
                h = gru_step(x[step], h, weights, config.get("reset_after", True))
            else:
                h = simple_step(x[step], h, weights)
            output = h
        outputs.append(output)
    return np.stack(outputs), [h, c] if kind == "LSTM" else [h]


CONFIGS = st.fixed_dictionaries(
    {
        "return_sequences": st.booleans(),
        "return_state": st.booleans(),
        "go_backwards": st.booleans(),
    }
)


@pytest.mark.parametrize("kind", sorted(GATES))
@given(config=CONFIGS, reset_after=st.booleans(), masked=st.booleans(), seed=SEEDS)
def test_a_recurrent_layer_is_its_cell_step_by_step(
    kind: str, config: dict[str, Any], reset_after: bool, masked: bool, seed: int
) -> None:
    config = {**config, "units": UNITS}
    if kind == "GRU":
        config["reset_after"] = reset_after
    weights, x = weights_of(kind, seed, config), numbers(seed + 9, 2, 4, FEATURES)
    mask = np.random.default_rng(seed).random((2, 4)) < 0.6 if masked else None
    outputs = outputs_of_call(layer_of(kind, config), weights, State(x, mask))
    assert outputs is not None
    for sample in range(2):
        own = None if mask is None else mask[sample]
        steps, states = walked(kind, x[sample], weights, config, own)
        expected = steps if config["return_sequences"] else steps[-1]
        np.testing.assert_allclose(outputs[0][sample], expected, atol=1e-10)
        for found, state in zip(outputs[1:], states, strict=False):
            np.testing.assert_allclose(found[sample], state, atol=1e-10)
    count = 1 + (2 if kind == "LSTM" else 1) * config["return_state"]
    assert len(outputs) == count


def test_an_initial_state_goes_on_where_another_call_ended() -> None:
    config = {"units": UNITS, "return_state": True}
    weights, x = weights_of("LSTM", 0, config), numbers(9, 2, 6, FEATURES)
    whole = outputs_of_call(layer_of("LSTM", config), weights, x)
    first = outputs_of_call(layer_of("LSTM", config), weights, x[:, :3])
    assert first is not None
    assert whole is not None
    refs = [{REF: [f"x{i}", 0]} for i in (1, 2)]
    layer = layer_of("LSTM", config, kwargs={"initial_state": refs})
    rest = outputs_of_call(layer, weights, x[:, 3:], first[1], first[2])
    assert rest is not None
    for found, expected in zip(rest, whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_an_initial_state_of_another_shape_and_a_stateful_layer_are_not_covered() -> None:
    config = {"units": UNITS}
    weights, x = weights_of("GRU", 0, config), numbers(9, 2, 3, FEATURES)
    layer = layer_of("GRU", config, kwargs={"initial_state": {REF: ["x1", 0]}})
    assert outputs_of_call(layer, weights, x, np.zeros((2, UNITS + 1))) is None
    stateful = layer_of("GRU", {**config, "stateful": True})
    assert outputs_of_call(stateful, weights, x) is None


def cell_spec(kind: str, **config: Any) -> dict[str, Any]:
    return {"module": "keras.layers", "class_name": kind, "config": {"units": UNITS, **config}}


@given(SEEDS)
def test_an_rnn_of_a_cell_is_the_layer_and_stacked_cells_feed_each_other(seed: int) -> None:
    x = numbers(seed, 2, 3, FEATURES)
    weights = weights_of("LSTM", seed + 1, {})
    layer = computed("LSTM", {"units": UNITS, "return_sequences": True}, weights, x)
    rnn = {"cell": cell_spec("LSTMCell"), "return_sequences": True}
    np.testing.assert_allclose(computed("RNN", rnn, weights, x), layer, atol=1e-12)
    second = [numbers(seed + 5 + i, *shape) for i, shape in enumerate([(2, 2), (2, 2), (2,)])]
    cells = {"cells": [cell_spec("LSTMCell"), cell_spec("SimpleRNNCell")]}
    stacked = {"module": "keras.layers", "class_name": "StackedRNNCells", "config": cells}
    both = computed("RNN", {"cell": stacked}, [*weights, *second], x)
    after = computed("SimpleRNN", {"units": UNITS}, second, layer)
    np.testing.assert_allclose(both, after, atol=1e-12)


def nested(kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"module": "keras.layers", "class_name": kind, "config": dict(config)}


@given(SEEDS, st.sampled_from(["concat", "sum", "mul", "ave", None]), st.booleans())
def test_both_ways_are_one_layer_and_one_turned_round(
    seed: int, mode: str | None, sequences: bool
) -> None:
    ahead_config = {"units": UNITS, "return_sequences": sequences}
    back_config = {**ahead_config, "go_backwards": True}
    ahead, back = weights_of("GRU", seed, {}), weights_of("GRU", seed + 5, {})
    x = numbers(seed + 9, 2, 4, FEATURES)
    y, reverse = computed("GRU", ahead_config, ahead, x), computed("GRU", back_config, back, x)
    reverse = reverse[:, ::-1] if sequences else reverse
    config = {
        "layer": nested("GRU", ahead_config),
        "backward_layer": nested("GRU", back_config),
        "merge_mode": mode,
    }
    outputs = outputs_of_call(layer_of("Bidirectional", config), [*ahead, *back], x)
    assert outputs is not None
    expected = {
        "concat": [np.concatenate([y, reverse], axis=-1)],
        "sum": [y + reverse],
        "mul": [y * reverse],
        "ave": [(y + reverse) / 2],
        None: [y, reverse],
    }[mode]
    assert len(outputs) == len(expected)
    for found, right in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-12)


def test_the_same_layer_on_every_step() -> None:
    x, kernel, bias = numbers(0, 2, 3, 4), numbers(1, 4, 5), numbers(2, 5)
    config = {"layer": nested("Dense", {"units": 5, "activation": "softmax"})}
    found = computed("TimeDistributed", config, [kernel, bias], x)
    for step in range(3):
        alone = computed("Dense", {"units": 5, "activation": "softmax"}, [kernel, bias], x[:, step])
        np.testing.assert_allclose(found[:, step], alone)
    with_mask = outputs_of_call(
        layer_of("TimeDistributed", config), [kernel, bias], State(x, np.ones((2, 3), bool))
    )
    assert with_mask is None


# Attention


def shared(scores: list[float]) -> list[float]:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from(["dot", "concat", "additive"]))
def test_attention_mixes_values_by_the_shares_of_their_scores(
    seed: int, causal: bool, scaled: bool, mode: str
) -> None:
    query, value, key = (numbers(seed + i, 2, n, 4) for i, n in enumerate((3, 5, 5)))
    scale = np.asarray(numbers(seed + 7, *([4] if mode == "additive" else []))) if scaled else None
    weight = np.array(0.7)
    weights = [w for w in (scale, weight if mode == "concat" else None) if w is not None]
    config: dict[str, Any] = {"use_scale": scaled}
    if mode != "additive":
        config["score_mode"] = mode
    kwargs = {"use_causal_mask": True} if causal else {}
    kind = "AdditiveAttention" if mode == "additive" else "Attention"
    layer = layer_of(kind, config, listed(3), kwargs)
    outputs = outputs_of_call(layer, weights, query, value, key)
    assert outputs is not None

    def score(q: Array, k: Array) -> float:
        if mode == "dot":
            return float(q @ k) * (1 if scale is None else float(scale))
        if mode == "concat":
            factor = 1 if scale is None else float(scale)
            return 0.7 * float(np.tanh(factor * (q + k)).sum())
        return float(((1 if scale is None else scale) * np.tanh(q + k)).sum())

    for sample, t in itertools.product(range(2), range(3)):
        seen = range(t + 1) if causal else range(5)
        shares = shared([score(query[sample, t], key[sample, s]) for s in seen])
        mixed = sum(share * value[sample, s] for share, s in zip(shares, seen, strict=True))
        np.testing.assert_allclose(outputs[0][sample, t], mixed, atol=1e-10)


def test_attention_leaves_masked_values_out_and_zeroes_masked_queries() -> None:
    query, value = numbers(0, 1, 2, 3), numbers(1, 1, 4, 3)
    query_mask, value_mask = np.array([[True, False]]), np.array([[True, False, True, True]])
    kwargs = {"return_attention_scores": True}
    layer = layer_of("Attention", {}, listed(2), kwargs)
    outputs = outputs_of_call(layer, [], State(query, query_mask), State(value, value_mask))
    assert outputs is not None
    mixed, shares = outputs
    assert shares[0, 0, 1] == 0
    assert shares[0].sum(axis=-1).tolist() == pytest.approx([1, 1])
    np.testing.assert_allclose(mixed[0, 0], shares[0, 0] @ value[0])
    assert mixed[0, 1].tolist() == [0, 0, 0]
    blind = outputs_of_call(layer, [], query, State(value, np.zeros((1, 4), bool)))
    assert blind is None  # a query that may see nothing has no documented share


def heads(
    x: Mapping[str, Array], weights: Mapping[str, Array], width: int, seen: Any, shared_by: int = 1
) -> Array:
    """Multi-head attention of one sample, pair by pair."""
    projected = {
        name: np.einsum("td,dhk->thk", x[name], weights[name]) + weights[f"{name}_bias"]
        for name in ("query", "key", "value")
    }
    query, key, value = projected["query"], projected["key"], projected["value"]
    result = np.tile(weights["output_bias"], (len(query), 1))
    for t, h in itertools.product(range(len(query)), range(query.shape[1])):
        places = [s for s in range(len(key)) if seen(t, s)]
        own = h // shared_by
        shares = shared([float(query[t, h] @ key[s, own]) / math.sqrt(width) for s in places])
        mixed = sum(share * value[s, own] for share, s in zip(shares, places, strict=True))
        result[t] += mixed @ weights["output"][h]
    return result


def head_weights(seed: int, queries: int, keys: int, width: int) -> dict[str, Array]:
    shapes = {
        "query": (4, queries, width),
        "key": (4, keys, width),
        "value": (4, keys, width),
        "output": (queries, width, 4),
    }
    found = {}
    for i, (name, shape) in enumerate(shapes.items()):
        found[name] = numbers(seed + i, *shape)
        found[f"{name}_bias"] = numbers(seed + 5 + i, *(shape[1:] if name != "output" else (4,)))
    return found


@given(SEEDS, st.booleans(), st.sampled_from([1, 2]))
def test_heads_of_queries_attend_and_may_share_keys(
    seed: int, causal: bool, shared_by: int
) -> None:
    weights = head_weights(seed, 2, 2 // shared_by, 3)
    query, value = numbers(seed + 20, 2, 3, 4), numbers(seed + 21, 2, 5, 4)
    kind, config = (
        ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3})
        if shared_by == 1
        else (
            "GroupQueryAttention",
            {"num_query_heads": 2, "num_key_value_heads": 1, "head_dim": 3},
        )
    )
    args = [{REF: ["x0", 0]}, {REF: ["x1", 0]}]
    layer = layer_of(kind, config, args, {"use_causal_mask": True} if causal else {})
    outputs = outputs_of_call(layer, list(weights.values()), query, value)
    assert outputs is not None
    for sample in range(2):
        x = {"query": query[sample], "key": value[sample], "value": value[sample]}
        seen = (lambda t, s: s <= t) if causal else (lambda t, s: True)
        expected = heads(x, weights, 3, seen, shared_by)
        np.testing.assert_allclose(outputs[0][sample], expected, atol=1e-10)


def test_an_attention_mask_says_who_sees_whom() -> None:
    weights = head_weights(3, 2, 2, 3)
    x = numbers(0, 1, 4, 4)
    mask = np.array([[[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]], bool)
    args = [{REF: [f"x{i}", 0]} for i in range(2)]
    kwargs = {"attention_mask": {REF: ["x2", 0]}}
    layer = layer_of("MultiHeadAttention", {"num_heads": 2, "key_dim": 3}, args, kwargs)
    outputs = outputs_of_call(layer, list(weights.values()), x, x, mask)
    assert outputs is not None
    own = dict.fromkeys(("query", "key", "value"), x[0])
    expected = heads(own, weights, 3, lambda t, s: mask[0, t, s])
    np.testing.assert_allclose(outputs[0][0], expected, atol=1e-10)
