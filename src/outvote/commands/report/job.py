"""What `report` is asked to do: the reports of a folder again, or campaigns compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outvote.findings.baseline import Baseline
from outvote.findings.known import KnownFile


@dataclass(frozen=True)
class ReportJob:
    """The reports of the last command in a folder, written again there."""

    out: Path
    known: KnownFile | None = None  # instead of those that the run was held against
    fail_on: str | None = None
    baseline: Baseline | None = None
    judges: bool = False  # whether findings fail this run, and not only that one


@dataclass(frozen=True)
class CompareJob:
    """Strategies held against each other; campaigns of the same one are repetitions."""

    folders: tuple[Path, ...]
    out: Path
    judges: bool = False
