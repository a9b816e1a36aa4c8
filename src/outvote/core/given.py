"""Files that users name: that they are there; TOML as tables."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from outvote.core.errors import UsageError


def require_file(path: Path) -> None:
    if not path.exists():
        raise UsageError(f"the file {path} does not exist")
    if not path.is_file():
        raise UsageError(f"{path} is not a file")


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Its tables; `what` names the file for whoever gave one that is not there."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"the {what} does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} could not be read: {error}") from error
