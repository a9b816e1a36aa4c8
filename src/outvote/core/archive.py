"""Zip archives from outside, looked at before anything in them is unpacked.

The table of contents is bounded, and what it announces is held against the size of the file, so
that neither a bomb nor a lie about sizes costs more memory than the file itself deserves.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path, PurePosixPath

from outvote.core.errors import UsageError

_MAX_TABLE = 1 << 20  # bytes of the table of contents: some 10,000 members
_MAX_UNPACKED = 64 << 30
_SMALL = 1 << 20  # what a file may unpack to whatever its size
_MAX_RATIO = 100  # numbers of a network hardly shrink; zeros shrink a thousandfold
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What the reading of an archive that is broken, or worse, ends with.
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(RuntimeError, NotImplementedError, ValueError, OverflowError),
)


class _Bounded(io.FileIO):
    """A file of which no more is read at once than a table of contents may take."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_TABLE:
            raise zipfile.BadZipFile(f"its table of contents takes {size:,} bytes")
        return super().read(size)


def members(path: Path, what: str) -> list[zipfile.ZipInfo]:
    """What the archive holds, if that is harmless to unpack; `what` it should be, for messages."""
    try:
        with _Bounded(path) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except BROKEN as error:
        raise UsageError(
            f"{path} is not a whole {what} ({error}); was it cut off while copying?"
        ) from error
    for entry in entries:
        _require_harmless(path, entry)
    (name, times), *_ = Counter(entry.filename for entry in entries).most_common(1) or [("", 0)]
    if times > 1:
        raise UsageError(f"{path} is refused: it holds {times} members called {name!r}")
    _require_proportion(path, entries)
    return entries


def require_whole(path: Path, what: str) -> None:
    """Read every member of an archive that `members` let pass: are the checksums right?"""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except BROKEN as error:
        raise UsageError(
            f"{path} is not a whole {what} ({error}); was it cut off while copying?"
        ) from error
    if damaged is not None:
        raise UsageError(f"{path} is damaged: its member {damaged!r} fails its checksum")


def _require_harmless(path: Path, entry: zipfile.ZipInfo) -> None:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in entry.filename:
        raise UsageError(
            f"{path} is refused: its member {entry.filename!r} points outside the archive"
        )
    if entry.flag_bits & 1:
        raise UsageError(
            f"{path} is refused: its member {entry.filename!r} is encrypted; save it without"
        )
    if entry.compress_type not in _METHODS:
        raise UsageError(
            f"{path} is refused: its member {entry.filename!r} is compressed by method "
            f"{entry.compress_type}; save it again without compression"
        )


def _require_proportion(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Members may lie over each other, so that the file counts, not the sum of their parts."""
    packed = max(1, path.stat().st_size)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MAX_UNPACKED or unpacked > max(_SMALL, _MAX_RATIO * packed):
        raise UsageError(
            f"{path} is refused: it would unpack from {packed:,} to {unpacked:,} bytes"
        )
