"""What is known of a check: filled stage by stage, and worth keeping if the user stops early."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from outvote.bench.noise import NoiseFloor
from outvote.commands.check.job import Job
from outvote.core.case import Case
from outvote.core.outputs import Outputs
from outvote.core.protocol import Hello, Ran
from outvote.core.target import Run
from outvote.findings.finding import Finding
from outvote.judge.compare import Comparison
from outvote.triage.lesson import Learnt


@dataclass
class Checked:
    """Complete at the end. It exists from the moment the model is read: there is always a case."""

    job: Job
    hellos: dict[str, Run[Hello]]
    case: Case
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    interrupted: bool = False
    runs: dict[str, Run[Ran]] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    noise: NoiseFloor | None = None
    explained: set[tuple[str, str]] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    repros: dict[str, str] = field(default_factory=dict)  # script of a fingerprint, once written
    warnings: list[str] = field(default_factory=list)
    relations: Counter[str] = field(default_factory=Counter)  # how often each was asked for
    trained: Learnt | None = None
    peaks: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if any(finding.triage != "precision" for finding in self.findings):
            return "inconsistent"
        return "interrupted" if self.interrupted else "consistent"
