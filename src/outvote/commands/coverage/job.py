"""What `coverage` is asked to do, and what is known of a test set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.target import Target
from outvote.run.process import Limits


@dataclass(frozen=True)
class CoverageJob:
    """Everything that can be chosen."""

    model: Path
    data: Path | Mapping[str, Array]
    target: Target
    threshold: float = 0.25
    train: Path | Mapping[str, Array] | None = None  # gives each neuron's usual range
    sections: int = 1000
    top: int = 3
    state: Path | None = None  # what earlier inputs covered; it is read, then written
    skip: tuple[str, ...] = ()
    count: int | None = None
    batch_size: int = 128
    custom: Path | None = None
    allow_code: bool = False
    limits: Limits = field(default_factory=Limits)
    out: Path | None = None  # where the reports go


@dataclass(frozen=True)
class NeuronState:
    """What a test set did to the neurons; merging two is taking the larger (or smaller) of each."""

    best: Array  # largest scaled value
    high: Array  # largest and smallest plain value
    low: Array
    top: Array  # was among the k largest of its layer
    sections: Array  # (neuron, section): was in this part of its usual range
    train_low: Array  # the usual range; empty without training data
    train_high: Array
    tests: int

    def merged(self, other: NeuronState) -> NeuronState:
        return NeuronState(
            np.maximum(self.best, other.best),
            np.maximum(self.high, other.high),
            np.minimum(self.low, other.low),
            self.top | other.top,
            self.sections | other.sections,
            self.train_low,
            self.train_high,
            self.tests + other.tests,
        )
