"""What `show` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ShowJob:
    """A finding by its folder, or by the beginning of its fingerprint in the folder of a run."""

    finding: str
    out: Path
