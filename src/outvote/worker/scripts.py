"""Scripts that the user named, run inside a worker; versions of its packages."""

from __future__ import annotations

import runpy
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from outvote.worker.main import Refused


def run_script(path: Path, what: str, name: str) -> dict[str, Any]:
    """Run a script that the user named, inside this process, as a module of that name."""
    sys.path.insert(0, str(path.parent))
    try:
        return runpy.run_path(str(path), run_name=name)
    except Exception as error:
        kind = type(error).__name__
        raise Refused(f"the {what} {path} failed with {kind}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))


def version_of(package: str) -> str:
    for name in (package, f"{package}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"
