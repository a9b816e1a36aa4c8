"""Many small black rectangles: dirt on the lens. Values only ever become darker.

Each move blackens one more patch: the one from which the gradient expects most.
"""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import Memory, over_channels, window_masks, window_sums


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    assert rules.rectangle is not None
    gain = window_sums(over_channels(-gradient * (x - rules.low)), *rules.rectangle)
    flat = gain.reshape(len(x), -1)
    places = flat.argmax(axis=1)
    useful = flat[np.arange(len(x)), places] > 0
    mask = window_masks(places, x.shape, *rules.rectangle)
    mask &= useful.reshape(-1, *(1,) * (x.ndim - 1))
    return np.where(mask, np.minimum(x, rules.low), x).astype(x.dtype)
