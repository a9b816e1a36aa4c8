"""Who left the others on a generated input, and what the majority says about it."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.explore.job import Differences, Explored


def majority(labels: Array) -> Array:
    """The label that more than half of the models give (rows: models); -1 where there is none."""
    best = np.full(labels.shape[1], -1)
    for row in labels:
        votes = (labels == row).sum(axis=0)
        best = np.where(2 * votes > len(labels), row, best)
    return best


def labels_of(found: Differences, explored: Explored) -> Array:
    """Each model's class or bin for each generated input."""
    return np.stack([explored.oracle.labels(answer) for answer in found.answers])


def seed_labels(found: Differences, explored: Explored) -> Array:
    """What all models said about the seed."""
    return explored.oracle.labels(found.before[0])


def deviating(found: Differences, explored: Explored) -> Array:
    """For each model and input, whether it is this model that left the others.

    It is outvoted by a majority; where there is none, its answer is no longer that of the seed.
    Values without bins have no majority: there it is the model that moved farthest.
    """
    if explored.kind == "values" and not explored.job.edges:
        moved = np.stack(
            [np.abs(a - b).max(axis=1) for a, b in zip(found.answers, found.before, strict=True)]
        )
        return np.asarray(moved == moved.max(axis=0))
    labels = labels_of(found, explored)
    most = majority(labels)
    reference = np.where(most >= 0, most, seed_labels(found, explored))
    return np.asarray(labels != reference)
