"""What is known of a search through releases: filled probe by probe."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from outvote.commands.bisect.job import BisectJob
from outvote.commands.bisect.releases import Interval
from outvote.core.protocol import Hello
from outvote.core.target import Run, Target


@dataclass(frozen=True)
class StartedTarget:
    """A target as it was started, and what it said then."""

    target: Target
    hello: Run[Hello]


@dataclass(frozen=True)
class Probe:
    """What the target made of the case on one release."""

    version: str
    run: Run
    to_reference: float | None  # None: nothing to compare with, or no result
    to_first: float | None
    consistent: bool | None  # with the reference; None: there is none
    message: str = ""  # why it failed, or how its outputs do not fit the reference's

    @property
    def state(self) -> str:
        if not self.run.ok:
            return self.run.outcome.value
        return {True: "consistent", False: "inconsistent", None: "ran"}[self.consistent]


@dataclass
class Bisected:
    """What is known so far; worth keeping if the user stops early."""

    job: BisectJob
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    interrupted: bool = False
    source: str = ""  # of the inputs
    instances: int = 0
    releases: list[str] = field(default_factory=list)
    references: list[StartedTarget] = field(default_factory=list)
    on_release: dict[str, StartedTarget] = field(default_factory=dict)  # those that were started
    probes: dict[str, Probe] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  # release -> why
    reference: str | None = None
    tolerance: float = 0.0
    interval: Interval | None = None  # the last release as before, the first as after

    @property
    def changed(self) -> bool:
        return self.interval is not None
