"""The largest difference, over the largest element and over the element itself; needs no truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outvote.judge.distances import looks
from outvote.judge.metrics import Reading, Rivals
from outvote.judge.patterns import pattern_relative
from outvote.judge.tolerance import model_tolerance

if TYPE_CHECKING:
    from outvote.judge.compare import Settings

NAME = "relative"
NEEDS = frozenset({"labels", "values", "none"})


def measure(rivals: Rivals, settings: Settings) -> Reading:
    distances, elements = looks(rivals.x, rivals.y, rivals.dtype)
    given = settings.tolerance
    limit = model_tolerance(rivals.dtype) if given is None else given
    return Reading(distances, limit, pattern_relative(distances), elements)
