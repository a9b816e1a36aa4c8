"""Where the reports of a test go."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path


def folder_of(out: Path | None, test: str) -> Path:
    """A folder by the name of the test; in the system's temporary folder unless named."""
    base = out or Path(tempfile.gettempdir()) / f"pytest-of-outvote-{_user()}"
    return base / re.sub(r"[^\w.-]+", "-", test).strip("-")[-120:]


def _user() -> str:
    import getpass

    return getpass.getuser()
