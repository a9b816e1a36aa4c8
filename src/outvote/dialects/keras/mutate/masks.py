"""Which steps of a sequence count: masks of whole rows, of ends, and with holes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array

# The rows of a mask: all steps, none, the first ones, the last ones, or with holes.
_ROWS = {"all": 0.12, "none": 0.14, "first": 0.2, "last": 0.2, "holes": 0.34}


def drawn_mask(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Truth values of that shape; along the last axis each row has a form of its own."""
    *before, steps = shape
    rows = [_row(steps, rng) for _ in range(int(np.prod(before)))]
    return np.array(rows, bool).reshape(tuple(shape))


def _row(steps: int, rng: np.random.Generator) -> Array:
    form = str(rng.choice(list(_ROWS), p=list(_ROWS.values())))
    if form in ("all", "none"):
        return np.full(steps, form == "all")
    if form == "holes":
        return rng.random(steps) < 0.5
    border = rng.integers(0, steps + 1)
    return np.arange(steps) < border if form == "first" else np.arange(steps) >= border
