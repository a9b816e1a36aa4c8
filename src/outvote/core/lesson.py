"""What training needs beside a model and its data."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.train_protocol import Named


@dataclass(frozen=True)
class Lesson:
    """A loss, an optimiser, and how many steps are taken; no loss: one that fits the data."""

    optimizer: Named
    loss: Named | None = None
    steps: int = 3
