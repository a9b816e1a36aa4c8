"""Looks at a model file before any framework does: is it there, whole, and harmless to unpack?

A model file is untrusted input. The driver reads only the archive's table of contents; the model
itself is read by Keras inside a worker process.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from outvote.core.errors import UsageError

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_MAX_UNPACKED = 64 << 30
_MAX_RATIO = 1000
SUFFIXES = (".keras", ".h5", ".hdf5", ".json")
CASE_FILE = "model.keras"
IN_PARTS = False
NAMED_DIMS = False


def inspect(path: Path, weights: Path | None) -> None:
    """Raise UsageError, with a remedy, for anything that is not a readable model file."""
    for file in (path, *([weights] if weights else [])):
        if not file.exists():
            raise UsageError(f"the file {file} does not exist")
        if not file.is_file():
            raise UsageError(f"{file} is not a file")
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
    try:
        with path.open("rb") as opened:
            head = opened.read(8)
    except OSError as error:
        raise UsageError(f"{path} could not be opened: {error.strerror}") from error
    if path.suffix == ".keras":
        _inspect_archive(path)
    elif path.suffix == ".json":
        _inspect_json(path)
    elif head != _HDF5_MAGIC:
        raise UsageError(f"{path} is not an HDF5 file (it begins with {head!r})")


def _inspect_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            damaged = archive.testzip()
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise UsageError(
            f"{path} is not a whole .keras archive ({error}); was it cut off while copying?"
        ) from error
    if damaged is not None:
        raise UsageError(f"{path} is damaged: its member {damaged} fails its checksum")
    for entry in entries:
        name = PurePosixPath(entry.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or ":" in entry.filename:
            raise UsageError(
                f"{path} is refused: its member {entry.filename!r} points outside the archive"
            )
    names = {entry.filename for entry in entries}
    for needed in ("config.json", "model.weights.h5"):
        if needed not in names:
            raise UsageError(f"{path} is not a Keras model: it has no {needed} inside")
    packed = sum(entry.compress_size for entry in entries) or 1
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MAX_UNPACKED or unpacked / packed > _MAX_RATIO:
        raise UsageError(
            f"{path} is refused: it would unpack from {packed:,} to {unpacked:,} bytes"
        )


def _inspect_json(path: Path) -> None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not readable JSON: {error}") from error
    if not isinstance(data, dict) or "class_name" not in data:
        raise UsageError(f"{path} is not a model architecture: it has no class_name")


def saved(live: Any, path: Path) -> Path | None:
    """A live Keras model, saved under that name; None for anything else."""
    if not any(base.__module__.startswith("keras.") for base in type(live).__mro__):
        return None
    file = path.with_suffix(".keras")
    live.save(file)
    return file
