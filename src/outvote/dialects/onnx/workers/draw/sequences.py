"""Sequences and signals: recurrent nets, attention, spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from outvote.dialects.onnx.workers.draw.node import NodeDraw, Table, codes
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Unfit, Value

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_FUNCTIONS = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Softplus")
_PER_GATE = {"RNN": 1, "GRU": 2, "LSTM": 3}


def recurrent(d: NodeDraw) -> NewNode:
    x = d.ranked(3)
    name, gates = d.operator.name, _GATES[d.operator.name]
    layout = d.between(0, 1) if d.opset >= 14 and d.chance(0.3) else 0
    steps, batch = (x.size(1), x.size(0)) if layout else (x.size(0), x.size(1))
    if not steps * batch:
        raise Unfit("no steps")
    hidden, direction = d.between(1, 3), d.setting("direction")
    ways = 2 if direction == "bidirectional" else 1
    settings: dict[str, Any] = {"hidden_size": hidden, **d.settings("clip", share=0.2)}
    if direction != "forward":
        settings["direction"] = direction
    if layout:
        settings["layout"] = 1
    if d.chance(0.3):
        functions = [d.one_of(_FUNCTIONS) for _ in range(_PER_GATE[name])]
        settings["activations"] = functions * ways
    settings |= d.settings("linear_before_reset", "input_forget", share=0.4)
    inputs: list[str] = [
        d.weights(x.dtype, (ways, gates * hidden, x.size(2))),
        d.weights(x.dtype, (ways, gates * hidden, hidden)),
        d.weights(x.dtype, (ways, 2 * gates * hidden)) if d.chance(0.6) else "",
    ]
    lengths = d.sketch.numbers.integers(1, steps + 1, batch)
    inputs.append(d.constant(lengths, "int32") if d.chance(0.3) else "")
    first = (batch, ways, hidden) if layout else (ways, batch, hidden)
    inputs.append(d.weights(x.dtype, first) if d.chance(0.4) else "")
    if name == "LSTM":
        inputs.append(d.weights(x.dtype, first) if d.chance(0.4) else "")
        inputs.append(d.weights(x.dtype, (ways, 3 * hidden)) if d.chance(0.2) else "")
    while inputs and not inputs[-1]:
        inputs.pop()
    return d.node(x, *inputs, outputs=d.between(1, 3 if name == "LSTM" else 2), **settings)


def attention(d: NodeDraw) -> NewNode:
    """Queries, keys and values of four axes, or of three with the number of heads."""
    width = d.between(1, 4)
    heads, shared = d.one_of(((1, 1), (2, 2), (2, 1), (4, 2)))
    batch, length, other = d.between(1, 2), d.between(1, 4), d.between(1, 4)
    flat = d.chance(0.4)

    def form(count: int, steps: int) -> tuple[int, ...]:
        return (batch, steps, count * width) if flat else (batch, count, steps, width)

    wanted = form(heads, length)
    query = d.tensor(d.types(0), lambda v: v.shape == wanted, lambda: wanted)
    inputs = [d.operand(query.dtype, form(shared, other)) for _ in range(2)]
    settings = d.settings("is_causal", "softcap", "scale", share=0.3)
    if flat:
        settings |= {"q_num_heads": heads, "kv_num_heads": shared}
    if not settings.get("is_causal") and d.chance(0.3):
        mask = (
            d.array(query.dtype, (length, other))
            if d.chance()
            else d.array("bool", (length, other))
        )
        if mask.dtype == bool:
            mask[:, 0] = True  # of nothing at all there is no average
        inputs.append(d.constant(mask, "bool" if mask.dtype == bool else query.dtype))
    return d.node(query, *inputs, **settings)


def rotate(d: NodeDraw) -> NewNode:
    heads, width = d.between(1, 2), d.one_of((2, 4, 6))
    batch, length = d.between(1, 2), d.between(1, 4)
    flat = d.chance(0.4)
    wanted = (batch, length, heads * width) if flat else (batch, heads, length, width)
    x = d.tensor(d.types(0), lambda v: v.shape == wanted, lambda: wanted)
    most = length + 2
    positions = [d.constant(d.sketch.numbers.integers(0, most, (batch, length)), "int64")]
    positions = positions if d.chance() else []
    cached = (most, width // 2) if positions else (batch, length, width // 2)
    caches = [d.operand(x.dtype, cached) for _ in range(2)]
    told = {"num_heads": heads} if flat else {}
    return d.node(x, *caches, *positions, **told, **d.settings("interleaved"))


def attend_linearly(d: NodeDraw) -> NewNode:
    heads, width = d.between(1, 2), d.between(1, 3)
    shape = (d.between(1, 2), d.between(1, 4), heads * width)
    query = d.tensor(d.types(0), lambda v: v.shape == shape, lambda: shape)
    inputs = [d.operand(query.dtype, shape) for _ in range(2)]
    told = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": "linear"}
    return d.node(query, *inputs, outputs=2, **told)


def fourier(d: NodeDraw) -> NewNode:
    """Of real numbers or pairs, which the last axis holds."""

    def pairs(value: Value) -> bool:
        return value.rank >= 3 and value.shape[-1] in (1, 2)

    x = d.tensor(d.types(0), pairs, lambda: (*d.shape_of(2), d.between(1, 2)))
    axis = d.between(1, x.rank - 2)
    size = x.size(axis)
    if size < 1:
        raise Unfit("no signal")
    real = x.shape[-1] == 1
    settings: dict[str, Any] = {}
    if real and d.chance(0.4):
        settings["onesided"] = 1
    elif d.chance(0.4):
        settings["inverse"] = 1
    length = max(1, size + d.between(-1, 2)) if d.chance(0.3) else None
    told = None if length is None else d.constant(np.int64(length))
    if d.opset >= 20:
        return d.node(x, told or "", d.constant(np.int64(axis)), **settings)
    return d.node(x, *([told] if told else []), axis=axis, **settings)


def short_fourier(d: NodeDraw) -> NewNode:
    frame, step = d.between(2, 4), d.between(1, 3)
    signal = d.tensor(
        d.types(0),
        lambda v: (
            v.rank == 3 and v.shape[-1] == 1 and isinstance(v.shape[1], int) and v.shape[1] >= 4
        ),
        lambda: (d.between(1, 2), d.between(4, 9), 1),
    )
    window = d.weights(signal.dtype, (frame,)) if d.chance() else ""
    told = d.constant(np.int64(frame))
    return d.node(signal, d.constant(np.int64(step)), window, told, **d.settings("onesided"))


def window(d: NodeDraw) -> NewNode:
    size = d.constant(d.between(1, 9), d.one_of(("int64", "int32")))
    told = {} if d.chance() else {"output_datatype": d.one_of(codes(d))}
    return d.node(size, **told, **d.settings("periodic"))


def mel(d: NodeDraw) -> NewNode:
    bins, length = d.between(2, 5), d.one_of((8, 16, 15))
    whole = [d.constant(n, "int64") for n in (bins, length, 8000)]
    edges = [d.constant(n, "float32") for n in (0.0, d.one_of((4000.0, 3000.0)))]
    return d.node(*whole, *edges)


TABLE: Table = {
    **dict.fromkeys(_GATES, recurrent),
    "Attention": attention,
    "RotaryEmbedding": rotate,
    "LinearAttention": attend_linearly,
    "DFT": fourier,
    "STFT": short_fourier,
    **dict.fromkeys(("HannWindow", "HammingWindow", "BlackmanWindow"), window),
    "MelWeightMatrix": mel,
}
