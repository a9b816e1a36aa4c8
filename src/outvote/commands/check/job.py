"""What `check` is asked to do, and what is known of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from outvote.bench.noise import NoiseFloor
from outvote.core.arrays import Array
from outvote.core.case import Case
from outvote.core.outputs import Outputs
from outvote.core.target import Run, Target
from outvote.findings.evidence import write_evidence
from outvote.findings.finding import Finding
from outvote.judge.compare import Comparison, Settings
from outvote.run.pool import Pool
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
    jobs: int | None = None
    links: tuple[str, ...] = ()  # folders or pages of wheels, for environments
    every_layer: bool = False  # compare hidden layers even where the outputs agree
    minimise: float = 20.0  # seconds to make one finding small; 0: leave findings as they are
    confirm: int = 0  # fresh workers in which every finding must show again


@dataclass
class Checked:
    """What is known so far; complete at the end, and worth keeping if the user stops early."""

    job: Job
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    interrupted: bool = False
    hellos: dict[str, Run] = field(default_factory=dict)
    case: Case | None = None
    runs: dict[str, Run] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    noise: NoiseFloor | None = None
    explained: set[tuple[str, str]] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if any(finding.triage != "precision" for finding in self.findings):
            return "inconsistent"
        return "interrupted" if self.interrupted else "consistent"

    def write_evidence(self, pool: Pool, out: Path) -> dict[str, str]:
        """A folder per finding; returns the repro script of each fingerprint that has one."""
        targets = {target.name: target for target in self.job.targets}
        return write_evidence(pool, self.findings, targets, self.hellos, out)
