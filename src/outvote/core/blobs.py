"""Arrays on disk under the hash of their content: written once, shared by all workers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array, byte_size, dtype_name, from_bytes, to_bytes
from outvote.core.errors import ProtocolError

HEADER_BYTES = 256  # bytes; a multiple of 64, so that the data is aligned when mapped
_MAPPED_BYTES = 64 << 10  # what is smaller is read sooner than mapped
_PART_BYTES = 4 << 20  # of a file, at a time
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """A folder of arrays, each named by its digest. Driver and workers open the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pinned: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, array: Array) -> str:
        """Store an array (if it is new) and return its digest."""
        header = _header(array)
        data = to_bytes(array)
        digest = hashlib.sha256(header)
        digest.update(data)
        name = digest.hexdigest()
        path = self.folder / name
        if not path.exists():
            self._write(path, header, data)
        return name

    def get(self, digest: str) -> Array:
        """The array of that digest, read-only; a large one is mapped from disk."""
        if not _DIGEST.fullmatch(digest):
            raise ProtocolError(f"a blob is named by 64 hexadecimal digits; received {digest!r}")
        path = self.folder / digest
        with path.open("rb") as file:
            head = json.loads(file.read(HEADER_BYTES))
            name, shape = head["dtype"], head["shape"]
            size = byte_size(name, shape)
            if size < _MAPPED_BYTES:
                return from_bytes(name, shape, file.read(size))
        raw = np.memmap(path, np.uint8, "r", HEADER_BYTES, (size,))
        return from_bytes(name, shape, raw)

    def put_file(self, path: Path) -> str:
        """Store the bytes of a file, like any array, without holding them in memory."""
        header = _header_of("uint8", [path.stat().st_size])
        digest = hashlib.sha256(header)
        handle, temporary = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file, path.open("rb") as source:
                file.write(header)
                while part := source.read(_PART_BYTES):
                    digest.update(part)
                    file.write(part)
            name = digest.hexdigest()
            Path(temporary).replace(self.folder / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return name

    def copy_file(self, digest: str, path: Path) -> None:
        """Write the bytes of such a blob to a file."""
        array = self.get(digest)
        if array.dtype != np.uint8 or array.ndim != 1:
            raise ProtocolError(f"the blob {digest} is no file")
        with path.open("wb") as file:
            file.write(array.data)

    def keep_only(self, digests: set[str]) -> int:
        """Delete all other arrays; returns how many. Arrays that are mapped stay readable."""
        others = [p for p in self.folder.iterdir() if p.name not in digests | self._pinned]
        for path in others:
            path.unlink(missing_ok=True)
        return len(others)

    def pin(self, digest: str) -> str:
        """Spare an array from every `keep_only`."""
        self._pinned.add(digest)
        return digest

    def _write(self, path: Path, header: bytes, data: memoryview) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(header)
                file.write(data)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _header(array: Array) -> bytes:
    return _header_of(dtype_name(array), list(array.shape))


def _header_of(dtype: str, shape: list[int]) -> bytes:
    text = json.dumps({"dtype": dtype, "shape": shape}).encode()
    if len(text) > HEADER_BYTES:
        raise ProtocolError(f"an array of rank {len(shape)} is not storable")
    return text.ljust(HEADER_BYTES)
