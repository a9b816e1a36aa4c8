"""What a compiler made one of: told beside a difference that takes several layers at once."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.model import Model
from outvote.run.pool import Pool


def told_region(pool: Pool, target: str, model: Model, inputs: Sequence[Array], layer: str) -> str:
    """A sentence that names the layers which a target fused with that one; empty if none."""
    regions = dialect(model.dialect).regions
    if regions is None:
        return ""
    names = regions.region_of(pool, target, model, inputs, layer)
    told = [f"{model.layer(name).kind} {name!r}" for name in names]
    return f" {target} fuses {', '.join(told)}." if told else ""
