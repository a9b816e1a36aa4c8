"""A batch in the portions that a model takes, and what it gave put together again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.instances import count_of, taken
from outvote.core.model import Model
from outvote.core.states import State


def portions(model: Model, data: Sequence[Array], batch: int) -> list[list[State]]:
    """What the model is fed, run by run: a batch that it takes, or all at once."""
    axes = [item.batch for item in model.inputs]
    count = count_of(data, axes)
    own = next((item.shape[item.batch] for item in model.inputs if item.batch is not None), None)
    apart = all(model.batch_axis(r) is not None for r in model.outputs)
    size = own or (batch if apart else count) or 1
    starts = range(0, count, size) if count else [0]
    return [
        [
            State(taken(array, item.batch, slice(s, s + size)), None, item.dtype, item.batch)
            for item, array in zip(model.inputs, data, strict=True)
        ]
        for s in starts
    ]


def joined(parts: Sequence[State]) -> State:
    first = parts[0]
    if len(parts) == 1 or first.batch is None:
        return first
    return first.but(np.concatenate([part.array for part in parts], first.batch))


def first_rows(state: State, rows: int) -> State:
    return state.but(taken(state.array, state.batch, slice(rows)))
