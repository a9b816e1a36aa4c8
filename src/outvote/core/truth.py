"""What `y` means for a model: class labels, values to hit, or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.arrays import Array


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
