"""Scripts that the user named, run inside a worker; versions of its packages."""

from __future__ import annotations

import runpy
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from outvote.core.protocol import ScriptText
from outvote.worker.main import Refused


def run_script(script: ScriptText, folder: Path, what: str, name: str) -> dict[str, Any]:
    """Run a script that the user named, inside this process, as a module of that name.

    It came as text and is written, with the modules beside it, to a folder below the given one.
    """
    place = Path(tempfile.mkdtemp(dir=folder, prefix="script-"))
    for inner, text in {**script.modules, Path(script.name).name: script.text}.items():
        path = place / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(place))
    try:
        return runpy.run_path(str(place / Path(script.name).name), run_name=name)
    except Exception as error:
        kind = type(error).__name__
        raise Refused(f"the {what} {script.name} failed with {kind}: {error}") from error
    finally:
        sys.path.remove(str(place))


def version_of(package: str) -> str:
    for name in (package, f"{package}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"
