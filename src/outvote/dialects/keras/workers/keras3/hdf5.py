"""Looks through an HDF5 file before Keras reads weights from it: only what lies in the file itself.

An HDF5 file can point at other files (external links, external storage, virtual datasets), at
itself in circles, and can announce far more numbers than it holds. Keras refuses some of it, in
some versions; weights that are read end in files that users publish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from outvote.worker.main import Refused

_DEEPEST = 64
_SMALL = 1 << 20  # bytes that a dataset may announce whatever it holds
_MAX_RATIO = 100


@contextmanager
def opened(file: Path, name: str) -> Iterator[tuple[Any, int]]:
    """The file, looked through, and how many bytes of numbers it holds."""
    try:
        found = h5py.File(file, "r")
    except OSError as error:
        raise Refused(f"{name} is not a whole HDF5 file: {error}") from error
    with found:
        yield found, _Inspector(name).bytes_in(found)


class _Inspector:
    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: set[Any] = set()

    def bytes_in(self, group: Any, depth: int = 0) -> int:
        """Bytes of all datasets below a group, each object once."""
        if depth > _DEEPEST:
            raise Refused(f"{self._name} is refused: its groups lie more than {_DEEPEST} deep")
        total = 0
        for key in group:
            if group.get(key, getclass=True, getlink=True) is not h5py.HardLink:
                raise Refused(
                    f"{self._name} is refused: its member {key!r} is a link, which may point "
                    "anywhere; save the weights again with Keras"
                )
            child = group[key]
            if child in self._seen:
                continue
            self._seen.add(child)
            if isinstance(child, h5py.Group):
                total += self.bytes_in(child, depth + 1)
            elif isinstance(child, h5py.Dataset):
                total += self._bytes_of(child)
        return total

    def _bytes_of(self, dataset: Any) -> int:
        if dataset.external or dataset.is_virtual:
            raise Refused(
                f"{self._name} is refused: the numbers of {dataset.name!r} lie in other files"
            )
        announced: int = math.prod(dataset.shape or ()) * dataset.dtype.itemsize
        held = dataset.id.get_storage_size()
        if announced > max(_SMALL, _MAX_RATIO * held):
            raise Refused(
                f"{self._name} is refused: {dataset.name!r} announces {announced:,} bytes and "
                f"holds {held:,}"
            )
        return announced
