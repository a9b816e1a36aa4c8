"""What `report` is asked to do: one campaign's reports, or a comparison of several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outvote.findings.gate import STRICT, Gate


@dataclass(frozen=True)
class ReportJob:
    """The reports of a stored campaign, written again into its own folder."""

    out: Path
    gate: Gate = STRICT
    judges: bool = False  # whether findings fail this run, and not only the campaign's


@dataclass(frozen=True)
class CompareJob:
    """Strategies held against each other; campaigns of the same one are repetitions."""

    folders: tuple[Path, ...]
    out: Path
    judges: bool = False
