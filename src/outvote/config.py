"""Reads `outvote.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError
from outvote.core.given import read_toml

FILE_NAME = "outvote.toml"


@dataclass(frozen=True)
class Config:
    """The tables of `outvote.toml`, and the folder its relative paths start from.

    A file that was only found may lie beside a model that somebody else made. It adds targets,
    which start when the user types their names; it changes nothing.
    """

    folder: Path = Path()
    targets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: Path | None = None  # None: there is no file
    named: bool = False  # the user asked for it; False: it lay in the current folder


def load_config(path: Path | None) -> Config:
    """The named file, or `outvote.toml` in the current folder if there is one."""
    named = path is not None
    path = path or Path(FILE_NAME)
    if not named and not path.exists():
        return Config()
    data = read_toml(path, f"configuration file {path}")
    unknown = sorted(data.keys() - {"targets"})
    if unknown:
        raise UsageError(f"{path} has the unknown table [{unknown[0]}]; known is [targets.NAME]")
    targets = data.get("targets", {})
    if not isinstance(targets, dict) or not all(isinstance(t, dict) for t in targets.values()):
        raise UsageError(f"{path}: targets are tables, written as [targets.NAME]")
    return Config(path.parent, targets, path, named)
