"""What `serve` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServeJob:
    """Show what lies below these folders; the first is where the workbench may write."""

    folders: tuple[Path, ...]
    port: int | None = None  # None: the usual one, or another that is free
    config: Path | None = None  # defines targets for runs that are started from a page
    opens: bool = False  # the browser
