"""An error inside outvote: no finding, one sentence, and a file that can be sent to us."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from outvote.core.text import printable
from outvote.core.version import VERSION

_PACKAGES = (
    *("numpy", "jinja2", "rich", "pillow", "psutil", "filelock", "platformdirs", "packaging"),
    *("keras", "tensorflow", "tensorflow-cpu", "jax", "jaxlib", "torch", "openvino"),
    *("onnx", "onnxruntime"),
)


def crash_sentence(error: BaseException, argv: Sequence[str], folder: Path | None) -> str:
    """Write the crash file, and say so; where no folder takes it, it is shown instead."""
    told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    text = _text(error, argv)
    path = _written(text, folder)
    if path is None:
        sys.stderr.write(printable(text))
    where = "the lines above" if path is None else f"the file {path}"
    return (
        f"an error inside outvote, which says nothing about the targets ({told}); "
        f"please send us {where}: traceback, versions and command line"
    )


def _text(error: BaseException, argv: Sequence[str]) -> str:
    lines = [
        f"outvote {VERSION} ended by an error of its own.",
        "",
        f"command   outvote {shlex.join(argv)}",
        f"when      {datetime.now(UTC).isoformat(timespec='seconds')}",
        f"python    {sys.version.split()[0]} ({sys.executable})",
        f"platform  {platform.platform()}",
        f"packages  {', '.join(_versions())}",
        "",
        *traceback.format_exception(error),
    ]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def _versions() -> list[str]:
    """Read from the files of the packages: nothing is imported."""
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _written(text: str, folder: Path | None) -> Path | None:
    """The file, in the first of these folders that takes it; no file is written over."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    for place in _places(folder):
        path = place / f"outvote-crash-{stamp}.txt"
        try:
            with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue  # the next folder, and at last the screen
        return path
    return None


def _places(folder: Path | None) -> list[Path]:
    places = (folder, Path(), Path(tempfile.gettempdir()))
    return [place for place in places if place is not None and place.is_dir()]
