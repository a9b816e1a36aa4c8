"""What `nan` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from outvote.core.target import Target
from outvote.run.process import Limits
from outvote.search.genetic import GeneticSettings


@dataclass(frozen=True)
class NanJob:
    """What is asked: a model, a target, what may change, and for how long."""

    model: Path
    target: Target
    data: Path | None = None
    level: str = "IN-WT"
    seconds: float = 60.0
    seed: int = 0
    genetic: GeneticSettings = field(default_factory=GeneticSettings)
    limits: Limits = field(default_factory=Limits)
    links: tuple[str, ...] = ()  # folders or pages of wheels, for environments
    out: Path | None = None  # where the reports and what was found go
