"""Fused layers: which of them a target computes at once."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.protocol import TellRegions
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled


def region_of(
    pool: Pool, target: str, model: Model, inputs: Sequence[Array], layer: str
) -> tuple[str, ...]:
    """The layers that a target fused with that one; none where it does not tell."""
    shapes = tuple(array.shape for array in inputs)
    run = ask_settled(pool, target, TellRegions(model=model, shapes=shapes))
    regions = run.reply.regions if run.ok else ()
    return next((names for names in regions if layer in names), ())
