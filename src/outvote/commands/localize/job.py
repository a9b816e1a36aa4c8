"""What `localize` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from outvote.core.target import Target
from outvote.localize.causal import T1, T2
from outvote.run.process import Limits


@dataclass(frozen=True)
class LocalizeJob:
    """What is asked: a model, its inputs, the targets, and AUDEE's two thresholds."""

    model: Path
    targets: tuple[Target, ...]
    data: Path | None = None
    t1: float = T1
    t2: float = T2
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    links: tuple[str, ...] = ()  # folders or pages of wheels, for environments
    out: Path | None = None  # where the reports go
