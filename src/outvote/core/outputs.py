"""What a worker's answer holds: the model's outputs, and tensors from inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outvote.core.arrays import Array
from outvote.core.states import State, unpack
from outvote.core.target import Run


@dataclass(frozen=True)
class Hidden:
    """What one target gave inside the model: tensors with masks, and dtypes, by layer."""

    states: dict[str, list[State]]
    dtypes: Mapping[str, list[str]]


def outputs_of(run: Run) -> Outputs:
    dtypes = run.reply["dtypes"]
    return Outputs(run.arrays[: len(dtypes)], tuple(dtypes))


def hidden_of(run: Run) -> Hidden:
    """What came back of the layers that were watched."""
    watched = run.reply.get("watched") or {}
    queue = list(run.arrays[len(run.reply["dtypes"]) :])
    states = {}
    for name, told in watched.items():
        size = sum(1 + has_mask for has_mask in told["masked"])
        states[name] = unpack(told["masked"], queue[:size])
        queue = queue[size:]
    return Hidden(states, {name: told["dtypes"] for name, told in watched.items()})


@dataclass(frozen=True)
class Outputs:
    """What one target gave for all inputs: arrays and the dtypes it said they have."""

    arrays: tuple[Array, ...]
    dtypes: tuple[str, ...]
