"""What `check` is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outvote.core.arrays import Array
from outvote.core.lesson import Lesson
from outvote.core.target import Target
from outvote.findings.gate import STRICT, Gate
from outvote.fleet.address import Address
from outvote.judge.compare import Settings
from outvote.run.process import Limits


@dataclass(frozen=True)
class Job:
    """Everything `check` is asked to do."""

    model: Path
    targets: tuple[Target, ...]
    weights: Path | None = None
    data: Path | Mapping[str, Array] | None = None
    settings: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)
    custom: Path | None = None
    allow_code: bool = False
    allow_nan: bool = False
    allow_empty: bool = False  # data with no instances is what the user tests
    count: int | None = None  # use the first so many inputs
    batch_size: int = 32
    seed: int = 0
    dims: Mapping[str, int] = field(default_factory=dict)  # sizes of free dimensions by name
    jobs: int | None = None
    links: tuple[str, ...] = ()  # folders or pages of wheels, for environments
    every_layer: bool = False  # compare hidden layers even where the outputs agree
    oracle: str = ""  # "metamorphic": every target is held against itself, too
    minimise: float = 20.0  # seconds to make one finding small; 0: leave findings as they are
    confirm: int = 0  # fresh workers in which every finding must show again
    lesson: Lesson | None = None  # training is compared, too
    out: Path | None = None  # where the reports go
    gate: Gate = STRICT  # what fails the run
    cluster: Address | None = None  # over which targets are spread; None: all run here
