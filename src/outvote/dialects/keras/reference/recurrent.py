"""Recurrent layers, step by step, and the wrappers that run a layer along time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Json
from outvote.dialects.keras.reference.call import Call, NotCovered, mask_of, nested, tensor, wide
from outvote.dialects.keras.reference.cells import Cell, cell_of

_OF_THE_CELL = (
    "units activation recurrent_activation use_bias reset_after unit_forget_bias dropout "
    "recurrent_dropout implementation"
)


def _layer(call: Call) -> list[Array]:
    """LSTM, GRU and SimpleRNN: an RNN of the cell with the layer's own parameters."""
    call.irrelevant(_OF_THE_CELL)
    parameters = {name: call.config[name] for name in _OF_THE_CELL.split() if name in call.config}
    call.irrelevant("use_cudnn")
    return _run(call, cell_of(f"{call.kind}Cell", parameters, call.weights))


def _rnn(call: Call) -> list[Array]:
    spec = call.get("cell")
    if not isinstance(spec, Mapping) or spec.get("module") != "keras.layers":
        raise NotCovered(f"a cell that is not of Keras: {spec!r}")
    return _run(call, cell_of(spec["class_name"], spec["config"], call.weights))


def _run(call: Call, cell: Cell) -> list[Array]:
    """A masked step changes no state and repeats the last output."""
    call.irrelevant("unroll")
    call.only("stateful", False)
    sequences, initial, given = call.arguments("sequences", "initial_state", "mask")
    x = wide(tensor(sequences))
    mask = mask_of(sequences) if given is None else tensor(given).astype(bool)
    kept = np.ones(x.shape[:2], bool) if mask is None else mask
    if kept.shape != x.shape[:2]:
        raise NotCovered("a mask that is not one truth value per step")
    if call.get("go_backwards", False):
        x, kept = x[:, ::-1], kept[:, ::-1]
    states = _initial(cell, initial, len(x))
    # `zero_output_for_mask` is documented for sequences alone.
    zeroed = call.get("zero_output_for_mask", False) and call.get("return_sequences", False)
    output = np.zeros((len(x), cell.units))
    outputs = []
    for step in range(x.shape[1]):
        new_output, new_states = cell.step(x[:, step], states)
        lives = kept[:, step, np.newaxis]
        output = np.where(lives, new_output, 0.0 if zeroed else output)
        states = [np.where(lives, new, old) for new, old in zip(new_states, states, strict=True)]
        outputs.append(output)
    result = np.stack(outputs, axis=1) if call.get("return_sequences", False) else output
    return [result, *states] if call.get("return_state", False) else [result]


def _initial(cell: Cell, given: Any, count: int) -> list[Array]:
    if given is None:
        return [np.zeros((count, size)) for size in cell.sizes]
    listed = given if isinstance(given, list) else [given]
    states = [wide(tensor(item)) for item in listed]
    if [state.shape for state in states] != [(count, size) for size in cell.sizes]:
        raise NotCovered("initial states of another shape")
    return states


def _bidirectional(call: Call) -> list[Array]:
    """One layer forwards and one backwards; its sequence is turned round before both are merged.

    Masked steps of a returned sequence are zero, whatever the layers say (documented).
    """
    forward, backward = call.get("layer"), call.get("backward_layer")
    if call.kwargs.get("initial_state") is not None or len(call.args) > 1:
        raise NotCovered("Bidirectional with an initial state")
    half = len(call.weights) // 2
    if backward is None:
        raise NotCovered("Bidirectional that does not say its backward layer")
    ahead = _one_way(call, forward, call.weights[:half])
    back = _one_way(call, backward, call.weights[half:])
    y, reverse = ahead[0], back[0]
    if forward["config"].get("return_sequences", False):
        reverse = reverse[:, ::-1]
    merged = _merged(call, y, reverse)
    return [*merged, *ahead[1:], *back[1:]]


def _one_way(call: Call, spec: Json, weights: Sequence[Array]) -> list[Array]:
    inner = nested(spec, weights, *call.args, **call.kwargs)
    if inner.kind not in _BOTH_WAYS:
        raise NotCovered(f"Bidirectional of {inner.kind}")
    config = {**inner.config, "zero_output_for_mask": inner.config.get("return_sequences", False)}
    return _computed(replace(inner, config=config))


def _merged(call: Call, y: Array, reverse: Array) -> list[Array]:
    mode = call.only("merge_mode", "concat", "sum", "mul", "ave", None)
    if mode is None:
        return [y, reverse]
    if mode == "concat":
        return [np.concatenate([y, reverse], axis=-1)]
    return [{"sum": y + reverse, "mul": y * reverse, "ave": (y + reverse) / 2}[mode]]


def _time_distributed(call: Call) -> list[Array]:
    """The same layer on every step."""
    (inputs,) = call.arguments("inputs")
    if mask_of(inputs) is not None:
        raise NotCovered("TimeDistributed with a mask")
    x = tensor(inputs)
    steps = [
        _computed(nested(call.get("layer"), call.weights, (x[:, step], None)))
        for step in range(x.shape[1])
    ]
    if any(len(outputs) != 1 for outputs in steps):
        raise NotCovered("TimeDistributed of a layer with several outputs")
    return [np.stack([outputs[0] for outputs in steps], axis=1)]


def _computed(call: Call) -> list[Array]:
    from outvote.dialects.keras.reference import compute  # a wrapper wraps layers of any family

    return compute(call)


_BOTH_WAYS = ("LSTM", "GRU", "SimpleRNN", "RNN")
KINDS = {
    "Bidirectional": _bidirectional,
    "GRU": _layer,
    "LSTM": _layer,
    "RNN": _rnn,
    "SimpleRNN": _layer,
    "TimeDistributed": _time_distributed,
}
EXACT: frozenset[str] = frozenset()
