"""D_MAD (CRADLE, equations 3 and 4): how far the distances to the truth are apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outvote.judge.distances import distance_mad
from outvote.judge.metrics import Reading, Rivals
from outvote.judge.patterns import pattern_mad

if TYPE_CHECKING:
    from outvote.judge.compare import Settings

NAME = "mad"
NEEDS = frozenset({"labels", "values"})


def measure(rivals: Rivals, settings: Settings) -> Reading:
    distances = distance_mad(rivals.truth, rivals.x, rivals.y)
    return Reading(distances, settings.mad_threshold, pattern_mad(distances))
