"""The cells of recurrent layers: what one step makes of an input and the states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Json
from outvote.dialects.keras.reference.activations import activation
from outvote.dialects.keras.reference.call import Call, NotCovered

States = list[Array]


@dataclass(frozen=True)
class Cell:
    """A step from (input, states) to (output, new states)."""

    units: int
    sizes: tuple[int, ...]  # of the states
    step: Callable[[Array, States], tuple[Array, States]]


def cell_of(kind: str, config: Mapping[str, Json], weights: Sequence[Array]) -> Cell:
    """A cell of Keras by its class name."""
    if kind == "StackedRNNCells":
        return _stacked(config, weights)
    if kind not in _CELLS:
        raise NotCovered(f"a cell of kind {kind}")
    call = Call(kind, config, tuple(weights), ())
    call.irrelevant("dropout recurrent_dropout implementation unit_forget_bias")
    cell = _CELLS[kind](call)
    call.require_all_read()
    return cell


def _simple(call: Call) -> Cell:
    """h' = activation(x · W + h · U + b)."""
    kernel, recurrent, bias = _weights(call)
    act = activation(call.get("activation", "tanh"))
    units = call.get("units")

    def step(x: Array, states: States) -> tuple[Array, States]:
        h = act(x @ kernel + states[0] @ recurrent + bias)
        return h, [h]

    return Cell(units, (units,), step)


def _lstm(call: Call) -> Cell:
    """Gates in the order input, forget, candidate, output (Hochreiter and Schmidhuber, 1997)."""
    kernel, recurrent, bias = _weights(call)
    act = activation(call.get("activation", "tanh"))
    gate = activation(call.get("recurrent_activation", "sigmoid"))
    units = call.get("units")

    def step(x: Array, states: States) -> tuple[Array, States]:
        h, c = states
        i, f, candidate, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=-1)
        c = gate(f) * c + gate(i) * act(candidate)
        h = gate(o) * act(c)
        return h, [h, c]

    return Cell(units, (units, units), step)


def _gru(call: Call) -> Cell:
    """Gates in the order update, reset, candidate (Cho et al., 2014).

    `reset_after` multiplies by the reset gate after the recurrent product, and has a bias of its
    own there.
    """
    after = call.get("reset_after", True)
    kernel, recurrent, bias = _weights(call)
    biases = bias if after and bias.ndim == 2 else np.stack([bias, np.zeros_like(bias)])
    act = activation(call.get("activation", "tanh"))
    gate = activation(call.get("recurrent_activation", "sigmoid"))
    units = call.get("units")

    def step(x: Array, states: States) -> tuple[Array, States]:
        (h,) = states
        xz, xr, xh = np.split(x @ kernel + biases[0], 3, axis=-1)
        hz, hr, hh = np.split(h @ recurrent + biases[1], 3, axis=-1)
        z, r = gate(xz + hz), gate(xr + hr)
        inner = r * hh if after else (r * h) @ recurrent[:, 2 * units :]
        h = z * h + (1 - z) * act(xh + inner)
        return h, [h]

    return Cell(units, (units,), step)


def _weights(call: Call) -> tuple[Array, Array, Array]:
    kernel, recurrent, bias = call.unpack(True, True, call.get("use_bias", True))
    assert kernel is not None
    assert recurrent is not None
    return kernel, recurrent, np.zeros(kernel.shape[-1]) if bias is None else bias


def _stacked(config: Mapping[str, Json], weights: Sequence[Array]) -> Cell:
    """Each cell reads the output of the one before; states and weights follow one another."""
    left = list(weights)
    cells = []
    for spec in config["cells"]:
        if spec.get("module") != "keras.layers":
            raise NotCovered("a cell that is not of Keras")
        count = 2 + bool(spec["config"].get("use_bias", True))
        cells.append(cell_of(spec["class_name"], spec["config"], left[:count]))
        left = left[count:]
    if left or set(config) - {"cells", "name", "trainable", "dtype"}:
        raise NotCovered("StackedRNNCells with more than its cells")

    def step(x: Array, states: States) -> tuple[Array, States]:
        queue, new = list(states), []
        for cell in cells:
            own, queue = queue[: len(cell.sizes)], queue[len(cell.sizes) :]
            x, own = cell.step(x, own)
            new += own
        return x, new

    return Cell(cells[-1].units, tuple(n for cell in cells for n in cell.sizes), step)


_CELLS = {"GRUCell": _gru, "LSTMCell": _lstm, "SimpleRNNCell": _simple}
