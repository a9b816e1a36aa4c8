"""What `bisect` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from outvote.core.lesson import Lesson
from outvote.core.target import Target
from outvote.fleet.address import Address
from outvote.judge.compare import Settings
from outvote.run.process import Limits


@dataclass(frozen=True)
class BisectJob:
    """Everything `bisect` is asked to do."""

    model: Path
    target: Target
    against: tuple[Target, ...]
    package: str
    first: str
    last: str
    data: Path | None = None
    limits: Limits = field(default_factory=Limits)
    links: tuple[str, ...] = ()
    seed: int = 0
    noise_factor: float = Settings().noise_factor
    finding: Path | None = None  # the folder that the case is from; its report.md says since when
    lesson: Lesson | None = None  # steps of training are compared, instead of what the model gives
    out: Path | None = None  # where the reports go
    cluster: Address | None = None  # over which releases are spread; None: one by one, here
