"""Scripts that the user named, run inside a worker."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from outvote.core.protocol import ScriptText
from outvote.worker.main import Context, Refused


def run_setup(context: Context) -> None:
    """The setup script, where the target has one."""
    if context.settings.setup is not None:
        run_script(context.settings.setup, context, "setup script", "__main__")


def run_script(script: ScriptText, context: Context, what: str, name: str) -> dict[str, Any]:
    """Run a script that the user named, inside this process, as a module of that name.

    It came by content and is written, with what came along, to a folder of this worker.
    """
    place = Path(tempfile.mkdtemp(dir=context.folder, prefix="script-"))
    for inner, text in {**script.modules, Path(script.name).name: script.text}.items():
        _below(place, inner).write_text(text, encoding="utf-8")
    for inner, digest in script.files.items():
        context.blobs.copy_file(digest, _below(place, inner))
    sys.path.insert(0, str(place))
    try:
        return runpy.run_path(str(place / Path(script.name).name), run_name=name)
    except Exception as error:
        kind = type(error).__name__
        hint = _HINT if _is_missing_here(error, context.folder) else ""
        raise Refused(f"the {what} {script.name} failed with {kind}: {error}{hint}") from error
    finally:
        sys.path.remove(str(place))


_HINT = (
    "; the script runs as a copy, beside which are the files of its own folder if it says __file__,"
    " and none from elsewhere: keep the file in that folder, or write its whole path"
)


def _below(place: Path, inner: str) -> Path:
    path = place / inner
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _is_missing_here(error: Exception, folder: Path) -> bool:
    """Whether a file was looked for near the copy."""
    if not isinstance(error, FileNotFoundError) or error.filename is None:
        return False
    return folder in Path(os.fsdecode(error.filename)).parents
