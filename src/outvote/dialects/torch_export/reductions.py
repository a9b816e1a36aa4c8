"""Ways to make a call smaller or plainer; between them stand those of any graph."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.triage.operators import equal_sizes, fewer_attributes, smaller_attributes
from outvote.triage.reductions import (
    Reduction,
    fewer_inputs,
    fewer_layers,
    fewer_outputs,
    plain_numbers,
)

REDUCTIONS: Sequence[Reduction] = (
    fewer_outputs,
    fewer_layers,
    fewer_inputs,
    fewer_attributes,
    equal_sizes,
    smaller_attributes,
    plain_numbers,
)
