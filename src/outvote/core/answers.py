"""What models answer to an input, and when two answers differ: classes, or numbers in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array


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
            stacked = np.stack(answers)
            with np.errstate(invalid="ignore"):
                spread = (stacked.max(axis=0) - stacked.min(axis=0)).max(axis=1)
            apart &= ~(spread <= self.tolerance)
        return np.asarray(apart | unclear)

    def coefficients(self, labels: Array, width: int) -> Array:
        """What F(x)[c] means as weights of an answer: the class of the seed, or every value."""
        if self.kind == "values":
            return np.ones((len(labels), width), np.float32)
        chosen = np.zeros((len(labels), width), np.float32)
        chosen[np.arange(len(labels)), labels] = 1
        return chosen
