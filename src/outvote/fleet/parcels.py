"""Files that crews need, by content: through Ray's object store, and kept once per node."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect_of
from outvote.core.errors import UsageError
from outvote.core.model import digest_of
from outvote.run.folder import OwnedFolder
from outvote.run.scripts import script_of

_UNUSED = 30 * 86400.0  # seconds after which a node forgets a parcel


@dataclass(frozen=True)
class Parcel:
    """A file, and those beside it that it needs."""

    name: str
    files: Mapping[str, str]  # path inside → digest of the content

    @property
    def key(self) -> str:
        return digest_of(self.name, sorted(self.files.items()))


Put = Callable[[bytes], Any]
Get = Callable[[Any], bytes]


class Post:
    """Packs files on the driver's side; each content is put into the object store once."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self.contents: dict[str, Any] = {}  # digest → where the object store has it

    def data(self, path: Path) -> Parcel:
        """A file that stands for itself."""
        return Parcel(path.name, {path.name: self._sent(path.read_bytes())})

    def model(self, path: Path) -> Parcel:
        """A model file; where one may lie in parts, with the files of its folder that it names."""
        data = path.read_bytes()
        files = {path.name: self._sent(data)}
        if dialect_of(path).files.IN_PARTS:
            files |= {name: self._sent(found.read_bytes()) for name, found in _named(path, data)}
        return Parcel(path.name, files)

    def script(self, path: Path) -> Parcel:
        """A setup script, with what goes to a worker with it."""
        with OwnedFolder() as folder:
            blobs = BlobStore(folder)
            text = script_of(path, blobs)
            beside = {name: blobs.get(digest).tobytes() for name, digest in text.files.items()}
        modules = {name: found.encode() for name, found in text.modules.items()}
        own = {} if path.name in beside else {path.name: text.text.encode()}
        everything = {**own, **modules, **beside}
        return Parcel(path.name, {name: self._sent(data) for name, data in everything.items()})

    def _sent(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self.contents:
            self.contents[digest] = self._put(data)
        return digest


def _named(model: Path, data: bytes) -> Iterator[tuple[str, Path]]:
    """Files below the folder of a model whose name stands in it."""
    for folder, _, names in os.walk(model.parent):
        for found in (Path(folder, name) for name in names):
            if found != model and found.name.encode() in data and found.is_file():
                yield found.relative_to(model.parent).as_posix(), found


def unpacked(
    parcel: Parcel, contents: Mapping[str, Any], get: Get, root: Path | None = None
) -> Path:
    """The file of a parcel on this node; what is not here yet is fetched, by one crew for all."""
    root = root or user_cache_path("outvote") / "fleet"
    root.mkdir(parents=True, exist_ok=True)
    folder = root / parcel.key
    with FileLock(root / f"{parcel.key}.lock"):
        if not folder.is_dir():
            _forget_unused(root)
            _fill(folder, parcel, contents, get)
        os.utime(folder)
    return folder / parcel.name


def _fill(folder: Path, parcel: Parcel, contents: Mapping[str, Any], get: Get) -> None:
    half = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for name, digest in parcel.files.items():
            data = get(contents[digest])
            if hashlib.sha256(data).hexdigest() != digest:
                raise UsageError(f"{name} came to a node of the cluster as other bytes than sent")
            path = half / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        half.rename(folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


def _forget_unused(root: Path) -> None:
    for path in root.iterdir():
        with suppress(OSError):  # another crew was quicker
            if path.is_dir() and time.time() - path.stat().st_mtime > _UNUSED:
                shutil.rmtree(path)
