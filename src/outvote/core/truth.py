"""What `y` means for a model: class labels, values to hit, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from outvote.core.arrays import Array


def one_hot(labels: Array, classes: int) -> Array:
    return np.eye(classes)[labels.astype(np.int64)]


@dataclass(frozen=True)
class Truth:
    """Ground truth for the model's first output."""

    labels: Array | None = None
    given: Array | None = None
    classes: int = 0

    @property
    def kind(self) -> str:
        if self.labels is not None:
            return "labels"
        return "none" if self.given is None else "values"

    @cached_property
    def values(self) -> Array | None:
        """The vector that a perfect output would equal: labels as one-hot (CRADLE, III-B)."""
        if self.labels is not None:
            return one_hot(self.labels, self.classes)
        return self.given
