"""Looks at a model file before any framework does: is it there, whole, and harmless to unpack?

A model file is untrusted input. The driver reads only the archive's table of contents; the model
itself is read by Keras inside a worker process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outvote.core.archive import members, require_whole
from outvote.core.errors import UsageError
from outvote.core.given import require_file

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_HDF5 = (".h5", ".hdf5")
_MAX_CONFIG = 16 << 20
SUFFIXES = (".keras", ".h5", ".hdf5", ".json")
CASE_FILE = "model.keras"
IN_PARTS = False
NAMED_DIMS = False


def inspect(path: Path, weights: Path | None) -> None:
    """Raise UsageError, with a remedy, for anything that is not a readable model file."""
    for file in (path, *([weights] if weights else [])):
        require_file(file)
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"{path} is not a model file by its ending {path.suffix!r}; "
            f"expected one of {', '.join(SUFFIXES)}"
        )
    if weights is not None and path.suffix != ".json":
        raise UsageError(
            f"--weights goes with an architecture in a .json file, not with {path.name}, "
            "which holds its own weights"
        )
    if path.suffix == ".keras":
        _inspect_archive(path)
    elif path.suffix == ".json":
        _inspect_json(path)
    for numbers in (weights, path if path.suffix in _HDF5 else None):
        if numbers is not None and _head(numbers) != _HDF5_MAGIC:
            raise UsageError(f"{numbers} is not an HDF5 file (it begins with {_head(numbers)!r})")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            return opened.read(8)
    except OSError as error:
        raise UsageError(f"{path} could not be opened: {error.strerror}") from error


def _inspect_archive(path: Path) -> None:
    what = ".keras archive"
    sizes = {entry.filename: entry.file_size for entry in members(path, what)}
    for needed in ("config.json", "model.weights.h5"):
        if needed not in sizes:
            raise UsageError(f"{path} is not a Keras model: it has no {needed} inside")
    _require_short(path, sizes["config.json"])
    require_whole(path, what)


def _inspect_json(path: Path) -> None:
    _require_short(path, path.stat().st_size)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not readable JSON: {error}") from error
    if not isinstance(data, dict) or "class_name" not in data:
        raise UsageError(f"{path} is not a model architecture: it has no class_name")


def _require_short(path: Path, size: int) -> None:
    """Read as JSON, a text takes twenty times its size."""
    if size > _MAX_CONFIG:
        raise UsageError(
            f"{path} is refused: its architecture takes {size:,} bytes, more than {_MAX_CONFIG:,}"
        )


def saved(live: Any, path: Path) -> Path | None:
    """A live Keras model, saved under that name; None for anything else."""
    if not hasattr(live, "save") or type(live).__module__.startswith("torch."):  # TorchScript's
        return None
    file = path.with_suffix(".keras")
    live.save(file)
    return file
