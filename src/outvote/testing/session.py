"""What a test session was started with, and which test is at work. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Setting:
    """The options of a session; `processes` are those of pytest-xdist that share the machine."""

    targets: tuple[str, ...] | None = None
    out: Path | None = None  # None: a temporary folder
    fail_on: str | None = None
    known: Path | None = None  # None: known.toml in `root`
    update_known: bool = False
    memory: float | None = None  # GiB that all workers of the session may hold together
    processes: int = 1
    root: Path = field(default_factory=Path)


@dataclass(frozen=True)
class CurrentTest:
    """The test at work: its name, and what its marker asks for."""

    name: str = "test"
    options: Mapping[str, Any] = field(default_factory=dict)
