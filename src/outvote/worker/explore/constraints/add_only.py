"""Binary features that may be added, never taken away, such as those of an Android manifest.

Each move adds the allowed features with the largest positive gradient; `step` says how many.
"""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import Memory


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    free = (x == rules.low) & (gradient > 0)
    if rules.increase is not None:
        free &= rules.increase
    flat = np.where(free, gradient, -np.inf).reshape(len(x), -1)
    count = min(max(1, round(rules.step)), flat.shape[1])
    best = np.argpartition(-flat, count - 1, axis=1)[:, :count]
    added = np.zeros(flat.shape, bool)
    np.put_along_axis(added, best, True, axis=1)
    added &= np.isfinite(flat)
    return np.where(added.reshape(x.shape), rules.high, x).astype(x.dtype)
