"""Another lighting: all values by the same amount, up or down as the mean gradient says.

DeepXplore moves by one step each time and may walk to and fro over brightnesses that it has seen.
Here every move reaches a new one: the gradient chooses which end of the explored range to extend,
and each extension of an end is larger than the last.
"""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import Memory

_GROWTH = 1.75
# Of the legal range. Near 1 every picture becomes the same white or black one: such an input
# splits models too, and says nothing.
_MOST = 0.8


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    if not memory:
        memory.update(up=np.zeros(len(x)), down=np.zeros(len(x)))
    axes = tuple(range(1, x.ndim))
    most = _MOST * float(np.max(rules.high - rules.low))
    up = np.mean(gradient, axis=axes, dtype=np.float64) > 0
    ends = [_amount(memory[end], rules.step) >= most for end in ("up", "down")]
    up = np.where(ends[0] | ends[1], ends[1], up)  # at the limit of one end, go on at the other
    free = ~(ends[0] & ends[1])
    memory["up"] = memory["up"] + (up & free)
    memory["down"] = memory["down"] + (~up & free)
    amount = np.where(up, 1, -1) * _amount(np.where(up, memory["up"], memory["down"]), rules.step)
    shift = np.clip(amount, -most, most).reshape(-1, *(1,) * len(axes)).astype(x.dtype)
    moved = rules.clip(seed + shift)
    return np.where(free.reshape(shift.shape), moved, x)


def _amount(moves: Array, step: float) -> Array:
    """How far an end lies after so many moves: a geometric series."""
    capped = np.minimum(moves, 100)  # far beyond every limit, and not yet infinite
    return np.asarray(step * (_GROWTH**capped - 1) / (_GROWTH - 1))
