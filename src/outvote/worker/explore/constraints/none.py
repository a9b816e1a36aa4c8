"""No constraint but the legal range, and the directions that features are given."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import Memory, normalised, permitted


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    free = np.where(permitted(gradient, rules), gradient, gradient.dtype.type(0))
    return rules.clip(x + rules.step * normalised(free))
