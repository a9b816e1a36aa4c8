"""D_CLASS (CRADLE, equations 1 and 2): how far the rank of the true class is apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outvote.judge.distances import distance_class
from outvote.judge.metrics import Reading, Rivals
from outvote.judge.patterns import pattern_class

if TYPE_CHECKING:
    from outvote.judge.compare import Settings

NAME = "class"
NEEDS = frozenset({"labels"})


def measure(rivals: Rivals, settings: Settings) -> Reading:
    assert rivals.truth.labels is not None
    distances = distance_class(rivals.truth.labels, rivals.x, rivals.y, settings.k)
    return Reading(distances, settings.class_threshold, pattern_class(distances, settings.k))
