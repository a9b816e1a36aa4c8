"""One rectangle of the picture may change: something covers a part of the lens.

Its place is free (DeepXplore, 6.2): where the first gradient is largest.
"""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import (
    Memory,
    normalised,
    over_channels,
    window_masks,
    window_sums,
)


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    assert rules.rectangle is not None
    if not memory:
        sums = window_sums(over_channels(np.abs(gradient)), *rules.rectangle)
        places = sums.reshape(len(x), -1).argmax(axis=1)
        memory["mask"] = window_masks(places, x.shape, *rules.rectangle)
    inside = np.where(memory["mask"], gradient, gradient.dtype.type(0))
    return rules.clip(x + rules.step * normalised(inside))
