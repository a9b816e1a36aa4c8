"""What proof scripts of stages of training show, in every dialect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.core.exercises import Exercise, Pull, Update
from outvote.core.target import Target
from outvote.findings.finding import Finding, Stage
from outvote.judge.distances import distance_relative

_PARTS = ("value", "gradient", "weights")


@dataclass(frozen=True)
class StageProof:
    """The array that shows it best, who says what it should be, and its place in the part."""

    expected: Array
    source: str
    place: int


def shown_in(finding: Finding, stage: Stage, targets: Mapping[str, Target]) -> dict[str, Target]:
    """Whom a script runs; who fails has told nothing."""
    names = dict.fromkeys((*stage.told, *finding.targets))
    return {name: targets[name] for name in names if name in targets}


def proof_of(finding: Finding, stage: Stage) -> StageProof | None:
    """None for what takes a whole model, or where nobody gives a right answer."""
    if not _is_small(stage.exercise) or stage.part not in _PARTS:
        return None
    honest = [name for name in stage.told if name not in finding.targets or not finding.accused]
    right = next(iter(honest), None)
    if right is None or not stage.told[right].outputs.arrays:
        return None
    exact = stage.expected
    told = stage.told[right].outputs.arrays if exact is None else exact.arrays
    given = stage.told.get(finding.accused or right, stage.told[right]).outputs.arrays
    points = [point for point in stage.points if finding.accused in point.wrong]
    place = points[0].place if points else _farthest(told, given)
    dtype = stage.told[right].outputs.arrays[place].dtype
    source = stage.source if exact is not None else f"{right}: one side's answer"
    return StageProof(told[place].astype(dtype), source, place)


def _farthest(told: tuple[Array, ...], given: tuple[Array, ...]) -> int:
    far = [
        float(np.nan_to_num(distance_relative(a[None], b[None]), nan=np.inf)[0])
        if a.shape == b.shape
        else np.inf
        for a, b in zip(told, given, strict=False)
    ]
    return int(np.argmax(far)) if far else 0


def _is_small(exercise: Exercise | None) -> bool:
    return isinstance(exercise, Update) or (
        isinstance(exercise, Pull) and len(exercise.model.layers) < 2
    )
