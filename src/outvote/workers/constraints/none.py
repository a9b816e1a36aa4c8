"""No constraint but the legal range: every value may change."""

from __future__ import annotations

from outvote.core.arrays import Array
from outvote.workers.constraints import Memory, Rules, normalised


def move(x: Array, gradient: Array, seed: Array, memory: Memory, rules: Rules) -> Array:
    return rules.clip(x + rules.step * normalised(gradient))
