"""Integer features, each with permission to grow, to shrink, both or neither (PDF documents).

The wish of the gradient is kept as a real number and rounded to whole steps from the seed, so that
many small wishes add up to a step.
"""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import Memory, normalised, permitted


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    if not memory:
        memory["wish"] = np.zeros(x.shape, np.float64)
    unit = np.asarray(1.0 if rules.unit is None else rules.unit, np.float64)
    grow = True if rules.increase is None else rules.increase
    shrink = True if rules.decrease is None else rules.decrease
    wanted = np.where(permitted(gradient, rules), rules.step * normalised(gradient), 0.0)
    wish = memory["wish"] + wanted
    least = np.where(shrink, np.minimum(rules.low - seed, 0), 0)
    most = np.where(grow, np.maximum(rules.high - seed, 0), 0)
    memory["wish"] = np.clip(wish, least, most)
    # Whole steps, towards the seed where the range ends between two.
    whole = np.rint(memory["wish"] / unit)
    whole = np.clip(whole, np.ceil(least / unit - 1e-6), np.floor(most / unit + 1e-6))
    return (seed + whole * unit).astype(x.dtype)
