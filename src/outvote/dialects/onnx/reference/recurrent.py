"""Recurrent operators, by the equations in the texts of RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered

Activation = Callable[[Array], Array]
States = tuple[Array, ...]  # H, and C of LSTM: (batch, hidden)

_ACTIVATIONS: dict[str, Activation] = {
    "tanh": np.tanh,
    "sigmoid": lambda x: np.exp(-np.logaddexp(0.0, -x)),
    "relu": lambda x: np.maximum(x, 0.0),
}


@dataclass(frozen=True)
class OneWay:
    """One direction: weights by gate, what is added to them, peepholes, activations."""

    w: Array  # (gate, hidden, input)
    r: Array  # (gate, hidden, hidden)
    wb: Array  # (gate, hidden)
    rb: Array
    p: Array  # (gate, hidden), of LSTM
    activations: Sequence[Activation]
    resets_late: bool = False  # linear_before_reset, of GRU

    def gate(self, n: int, x: Array, h: Array) -> Array:
        """X · W' + H · R' + Wb + Rb."""
        return np.asarray(x @ self.w[n].T + h @ self.r[n].T + self.wb[n] + self.rb[n])


def _rnn_step(cell: OneWay, x: Array, states: States) -> States:
    return (cell.activations[0](cell.gate(0, x, states[0])),)


def _gru_step(cell: OneWay, x: Array, states: States) -> States:
    """Gates z, r, h."""
    (h,), (f, g) = states, cell.activations
    z, r = (f(cell.gate(n, x, h)) for n in (0, 1))
    if cell.resets_late:
        new = g(x @ cell.w[2].T + r * (h @ cell.r[2].T + cell.rb[2]) + cell.wb[2])
    else:
        new = g(cell.gate(2, x, r * h))
    return ((1 - z) * new + z * h,)


def _lstm_step(cell: OneWay, x: Array, states: States) -> States:
    """Gates i, o, f, c; peepholes i, o, f."""
    (h, c), (f, g, last) = states, cell.activations
    i = f(cell.gate(0, x, h) + cell.p[0] * c)
    forget = f(cell.gate(2, x, h) + cell.p[2] * c)
    c = forget * c + i * g(cell.gate(3, x, h))
    o = f(cell.gate(1, x, h) + cell.p[1] * c)
    return (o * last(c), c)


@dataclass(frozen=True)
class Recurrence:
    """An operator: its gates, states, activations, and what it does at each place."""

    gates: int
    states: int
    defaults: tuple[str, ...]
    step: Callable[[OneWay, Array, States], States]

    def __call__(self, call: NodeCall) -> list[Array]:
        x, layout = call.floats(0), call.only("layout", 0, 1)
        x = np.swapaxes(x, 0, 1) if layout else x  # (place, batch, input)
        self._require_whole_sequences(call, len(x))
        ways = {"forward": (1,), "reverse": (-1,), "bidirectional": (1, -1)}[
            str(call.only("direction", "forward", "reverse", "bidirectional"))
        ]
        cells = self._cells(call, len(ways))
        first = self._first(call, (len(ways), x.shape[1], cells[0].w.shape[1]), layout)
        every, ends = [], []
        for way, cell in enumerate(cells):
            states: States = tuple(some[way] for some in first)
            seen = []
            for place in x[:: ways[way]]:
                states = self.step(cell, place, states)
                seen.append(states[0])
            every.append(np.stack(seen[:: ways[way]]))
            ends.append(states)
        y = np.stack(every, axis=1)  # (place, direction, batch, hidden)
        last = [np.stack(some) for some in zip(*ends, strict=True)]
        if layout:
            y, last = np.moveaxis(y, 2, 0), [np.swapaxes(some, 0, 1) for some in last]
        return [y, *last]

    def _require_whole_sequences(self, call: NodeCall, places: int) -> None:
        lengths = call.arg(4)
        if not places or (lengths is not None and (lengths != places).any()):
            raise Uncovered("what stands behind the end of a sequence")

    def _cells(self, call: NodeCall, ways: int) -> list[OneWay]:
        w, r, b, p = call.floats(1), call.floats(2), call.arg(3), call.arg(7)
        hidden = w.shape[1] // self.gates
        call.get("hidden_size")
        call.only("input_forget", 0)
        late, clip = bool(call.get("linear_before_reset", 0)), call.get("clip")
        names = [str(n).lower() for n in call.get("activations") or self.defaults * ways]
        if len(names) != len(self.defaults) * ways or not set(names) <= set(_ACTIVATIONS):
            raise Uncovered(f"{call.kind}(activations={names})")
        b = np.zeros((ways, 2 * self.gates * hidden)) if b is None else b
        p = np.zeros((ways, 3 * hidden)) if p is None else p
        used = len(self.defaults)
        return [
            OneWay(
                w[way].reshape(self.gates, hidden, -1),
                r[way].reshape(self.gates, hidden, hidden),
                b[way].reshape(2, self.gates, hidden)[0],
                b[way].reshape(2, self.gates, hidden)[1],
                p[way].reshape(-1, hidden),
                [_clipped(_ACTIVATIONS[n], clip) for n in names[way * used : (way + 1) * used]],
                late,
            )
            for way in range(ways)
        ]

    def _first(self, call: NodeCall, shape: tuple[int, ...], layout: int) -> list[Array]:
        """The states before the first place: (direction, batch, hidden)."""
        told = [call.arg(5 + n) for n in range(self.states)]
        turned = [some if some is None or not layout else np.swapaxes(some, 0, 1) for some in told]
        return [np.zeros(shape) if some is None else some for some in turned]


def _clipped(activation: Activation, most: float | None) -> Activation:
    """What an activation reads lies between two bounds."""
    return activation if most is None else lambda x: activation(np.clip(x, -most, most))


OPERATORS = {
    "RNN": Recurrence(1, 1, ("tanh",), _rnn_step),
    "GRU": Recurrence(3, 1, ("sigmoid", "tanh"), _gru_step),
    "LSTM": Recurrence(4, 2, ("sigmoid", "tanh", "tanh"), _lstm_step),
}
