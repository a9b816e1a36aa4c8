"""Where the reports of a test go."""

from __future__ import annotations

import getpass
import os
import re
import tempfile
from pathlib import Path


def folder_of(out: Path | None, test: str) -> Path:
    """A folder by the name of the test; in the system's temporary folder unless named."""
    return (out or _temporary()) / re.sub(r"[^\w.-]+", "-", test).strip("-")[-120:]


def _temporary() -> Path:
    """The user's own, which nobody else may have made; it is swept after a week."""
    base = Path(tempfile.gettempdir()) / f"outvote-tests-{getpass.getuser()}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != os.getuid():
        return Path(tempfile.mkdtemp(prefix="outvote-tests-"))
    return base
