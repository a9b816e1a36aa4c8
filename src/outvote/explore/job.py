"""What `outvote explore` is asked to do, and what it knows so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.answers import Oracle
from outvote.core.arrays import Array
from outvote.core.case import Data
from outvote.core.model import Model
from outvote.core.protocol import Hello
from outvote.core.target import Run, Target
from outvote.run.process import Limits

_FOLDER = Path(__file__).parent.parent / "worker" / "explore" / "constraints"
# Found by their files, of which only the names are read here: they belong to the workers.
CONSTRAINTS = tuple(sorted(f.stem.replace("_", "-") for f in _FOLDER.glob("[a-z]*.py")))
# DeepXplore, table 2: λ1, λ2 and s by domain. Add-only: s is how many features a move adds. Of all
# others s counts in 255ths of the range.
DEFAULTS: Mapping[str, tuple[float, float, float]] = {
    "integer": (2.0, 0.1, 0.1),
    "add-only": (1.0, 0.5, 1.0),
}
FOR_PICTURES = (1.0, 0.1, 10.0)


@dataclass(frozen=True)
class Retraining:
    """What `--retrain` asks for."""

    train: Path | Mapping[str, Array]  # x and y
    test: Path | Mapping[str, Array]
    epochs: int = 5  # the epochs and the number of added inputs are the paper's (7.3)
    most_added: int = 100
    learning_rate: float = 1e-4
    more_tests: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)  # by name


@dataclass(frozen=True)
class ExploreJob:
    """Everything that can be chosen. None means: as the paper has it for this domain."""

    models: tuple[Path, ...]
    data: Path | Mapping[str, Array]
    target: Target
    constraint: str = "light"  # a built-in one, or the path of a file
    lambda1: float | None = None
    lambda2: float | None = None
    step: float | None = None
    threshold: float = 0.0
    iterations: int = 20
    until_coverage: float | None = None
    answers: str | None = None  # "classes" or "values"
    tolerance: float | None = None
    edges: tuple[float, ...] = ()
    limits_of_range: tuple[float, float] | None = None
    rectangle: tuple[int, int] | None = None
    features: Path | None = None
    groups: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    count: int | None = None
    batch_size: int = 128
    seed: int = 0
    baselines: bool = True
    retraining: Retraining | None = None
    confirm: Target | None = None  # every find must split the models on this one too
    custom: Path | None = None
    allow_code: bool = False
    limits: Limits = field(default_factory=Limits)
    out: Path | None = None  # where the reports and the finds go

    @property
    def hyperparameters(self) -> tuple[float, float, float]:
        """λ1, λ2 and the step, in the paper's units."""
        usual = DEFAULTS.get(self.constraint, FOR_PICTURES)
        given = (self.lambda1, self.lambda2, self.step)
        l1, l2, step = (
            default if value is None else value for value, default in zip(given, usual, strict=True)
        )
        return l1, l2, step


@dataclass(frozen=True)
class ModelUnderTest:
    """One of the models under test."""

    name: str  # unique among the subjects; what users see
    path: Path
    model: Model
    output_shape: Sequence[int | None]


@dataclass
class Differences:
    """Generated inputs on which the models differ; one row each in every array."""

    seed: Array  # number of the seed it started from
    inputs: list[Array]
    answers: list[Array]  # per model
    before: list[Array]  # per model, on the seed
    iterations: Array
    chosen: Array  # the model that was to leave the others

    @property
    def count(self) -> int:
        return len(self.seed)

    def rows(self, wanted: Array) -> Differences:
        """Only these."""
        return Differences(
            self.seed[wanted],
            [array[wanted] for array in self.inputs],
            [array[wanted] for array in self.answers],
            [array[wanted] for array in self.before],
            self.iterations[wanted],
            self.chosen[wanted],
        )


@dataclass
class Coverage:
    """What one set of inputs does to the neurons of every model."""

    best: list[Array]  # largest scaled value of each neuron
    first: list[Array]  # number of the first input that activates it
    tests: int


@dataclass
class Explored:
    """What is known so far; complete at the end, and worth keeping if the user stops early."""

    job: ExploreJob
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    hello: Run[Hello] | None = None
    subjects: list[ModelUnderTest] = field(default_factory=list)
    data: Data | None = None
    kind: str = "classes"
    layers: list[list[dict[str, Any]]] = field(default_factory=list)  # with neurons, per model
    feature_names: tuple[str, ...] = ()
    tried: int = 0
    cycles: int = 0
    already: list[int] = field(default_factory=list)
    found: Differences | None = None
    unconfirmed: int = 0  # finds on which the models agree on the other target
    best: list[Array] = field(default_factory=list)  # coverage of the tests so far
    unmoved: int = 0
    flat: int = 0
    first_seconds: float | None = None
    search_seconds: float = 0.0
    search_cpu_seconds: float = 0.0  # what it takes on an idle machine, up to shared caches
    seconds: float = 0.0
    interrupted: bool = False
    covered: dict[str, Coverage] = field(default_factory=dict)  # explore, random, fgsm
    split_by: dict[str, int] = field(default_factory=dict)  # how many of a baseline's inputs split
    retraining: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def oracle(self) -> Oracle:
        """When the models' answers differ."""
        return Oracle(self.kind, self.job.tolerance, self.job.edges)

    @property
    def coverage(self) -> float:
        """Covered neurons of all models, as a share (the paper's average)."""
        total = sum(len(best) for best in self.best)
        hit = sum(int((best > self.job.threshold).sum()) for best in self.best)
        return hit / total if total else 0.0

    def add(self, new: Differences) -> None:
        old = self.found
        if old is None:
            self.found = new
            return
        self.found = Differences(
            np.concatenate([old.seed, new.seed]),
            [np.concatenate(pair) for pair in zip(old.inputs, new.inputs, strict=True)],
            [np.concatenate(pair) for pair in zip(old.answers, new.answers, strict=True)],
            [np.concatenate(pair) for pair in zip(old.before, new.before, strict=True)],
            np.concatenate([old.iterations, new.iterations]),
            np.concatenate([old.chosen, new.chosen]),
        )
