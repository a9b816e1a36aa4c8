"""Where workers keep what takes long to make and is the same in every run."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str, otherwise: Path) -> Path:
    """A folder of that name in the user's cache; another one where that cannot be written to."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "outvote" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return otherwise
    return folder if os.access(folder, os.W_OK) else otherwise
