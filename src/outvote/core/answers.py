"""What models answer to an input, and when two answers differ: classes, or numbers in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array

# What another implementation's float32 does not move: the lead of a class in probability, and a
# value, as a part of itself (or of 1, for small ones).
SURE_LEAD = 1e-3
ROUNDING = 1e-5


@dataclass(frozen=True)
class Oracle:
    """When the answers of models count as different (DeepXplore, 4.2; steering angles: 6.1)."""

    kind: str  # "classes" or "values"
    tolerance: float | None = None  # values: apart by more than this
    edges: tuple[float, ...] = ()  # values: in different bins between these edges

    def labels(self, answer: Array) -> Array:
        """One class or bin per input; -1 where the answer is not a number."""
        finite = np.isfinite(answer).all(axis=1)
        if self.kind == "classes":
            found = np.nan_to_num(answer, nan=-np.inf).argmax(axis=1)
        else:
            found = np.digitize(answer[:, 0], self.edges)
        return np.where(finite, found, -1)

    def differ(self, answers: Sequence[Array]) -> Array:
        """For each input whether the models answer differently; NaN is never an agreement."""
        labels = np.stack([self.labels(answer) for answer in answers])
        unclear = (labels < 0).any(axis=0)
        if self.kind == "classes":
            return np.asarray((labels != labels[0]).any(axis=0) | unclear)
        apart = np.ones(labels.shape[1], bool)
        if self.edges:
            apart &= (labels != labels[0]).any(axis=0)
        if self.tolerance is not None:
            apart &= ~(self._spread(answers) <= self.tolerance)
        return np.asarray(apart | unclear)

    def clearly_differ(self, answers: Sequence[Array]) -> Array:
        """For each input whether the models differ so much that no rounding makes them agree.

        Two models that are sure of their answers must differ. What differs on a knife's edge
        only would agree again when the same file is run on another implementation.
        """
        labels = np.stack([self.labels(answer) for answer in answers])
        sure = np.stack([self._sure(answer) for answer in answers])
        lowest = np.where(sure, labels, np.iinfo(labels.dtype).max).min(axis=0)
        highest = np.where(sure, labels, -1).max(axis=0)
        apart = np.ones(labels.shape[1], bool)
        if self.kind == "classes" or self.edges:
            apart &= lowest < highest
        if self.tolerance is not None:
            doubt = _doubt(np.abs(np.stack(answers)).max(axis=(0, 2)))
            apart &= self._spread(answers) > self.tolerance + doubt
        return np.asarray(apart | (labels < 0).any(axis=0))

    def _sure(self, answer: Array) -> Array:
        """For each input whether the model's class or bin is beyond doubt."""
        if self.kind == "classes":
            best = np.sort(np.nan_to_num(answer).astype(np.float64), axis=1)
            return np.asarray(best[:, -1] - best[:, -2] > SURE_LEAD)
        if not self.edges:
            return np.ones(len(answer), bool)
        value = answer[:, 0].astype(np.float64)
        distance = np.abs(value[:, None] - np.asarray(self.edges)).min(axis=1)
        return np.asarray(distance > _doubt(value))

    def _spread(self, answers: Sequence[Array]) -> Array:
        """How far the models' values are apart."""
        stacked = np.stack(answers)
        with np.errstate(invalid="ignore"):
            return np.asarray((stacked.max(axis=0) - stacked.min(axis=0)).max(axis=1))

    def coefficients(self, labels: Array, width: int) -> Array:
        """What F(x)[c] means as weights of an answer: the class of the seed, or every value."""
        if self.kind == "values":
            return np.ones((len(labels), width), np.float32)
        chosen = np.zeros((len(labels), width), np.float32)
        chosen[np.arange(len(labels)), labels] = 1
        return chosen


def _doubt(value: Array) -> Array:
    return np.asarray(ROUNDING * np.maximum(1.0, np.abs(value)))
