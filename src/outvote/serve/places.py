"""The folders with results below those that the workbench was given."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from outvote.store.store import FILE

RESULT = "result.json"
_DEEPEST = 6  # folders below a given one
_NOT_LOOKED_INTO = frozenset({"findings", "blobs", "node_modules", "site-packages", "__pycache__"})


@dataclass(frozen=True)
class Place:
    """A folder with the results of commands; addresses know it by its key, never by a path."""

    key: str
    path: Path
    name: str

    def stamp(self) -> tuple[int, ...]:
        """Changes with every write of what the page shows."""
        found = []
        for name in (FILE, f"{FILE}-wal", RESULT):
            try:
                status = (self.path / name).stat()
            except OSError:
                continue
            found += [status.st_mtime_ns, status.st_size]
        return tuple(found)

    @property
    def has_store(self) -> bool:
        return (self.path / FILE).is_file()


def places_below(roots: Sequence[Path]) -> list[Place]:
    """Every folder with a store or a result, by its path; links are not followed."""
    found = {path: root for root in roots for path in _walk(root)}
    return [_place(path, root, len(roots)) for path, root in sorted(found.items())]


def _walk(root: Path) -> Iterator[Path]:
    top = len(root.parts)
    for folder, inner, files in os.walk(root):
        path = Path(folder)
        deep = len(path.parts) - top >= _DEEPEST
        inner[:] = [] if deep else sorted(n for n in inner if _is_looked_into(n))
        if FILE in files or RESULT in files:
            yield path


def _is_looked_into(name: str) -> bool:
    return not name.startswith(".") and name not in _NOT_LOOKED_INTO


def key_of(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def _place(path: Path, root: Path, roots: int) -> Place:
    inside = path.relative_to(root)
    several = Path(root.name) / inside if roots > 1 else inside
    return Place(key_of(path), path, str(several) if several.parts else root.name)
