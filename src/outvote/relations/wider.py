"""The same computation in float64: results of narrower types are it, rounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outvote.bench.relation import Asked, OtherWay
from outvote.core.dialect import dialect
from outvote.core.outputs import Outputs
from outvote.judge.tolerance import PLACE

NAME = "wider"
TITLE = "a wider type must give the same, up to rounding"


def twin(asked: Asked) -> OtherWay | None:
    """Of one layer that gives narrower floats: many add up, and whole numbers stand at a step."""
    widening = dialect(asked.specimen.model.dialect).widening
    if widening is None or not asked.target.can("float64") or len(asked.specimen.model.layers) > 1:
        return None
    if not all(dtype in PLACE and dtype != "float64" for dtype in asked.plain.dtypes):
        return None
    wide = widening.float64_of(asked.specimen, asked.bench.pool.blobs)
    return OtherWay(wide, _sides, exact=True)


def _sides(plain: Outputs, twin: Outputs) -> tuple[Outputs, Outputs] | None:
    """A library may narrow what it is given: then it did not compute in a wider type."""
    pairs = zip(plain.dtypes, twin.dtypes, strict=False)
    if not all(PLACE.get(wide, np.inf) < PLACE[narrow] for narrow, wide in pairs):
        return None
    return replace(twin, dtypes=plain.dtypes), plain
