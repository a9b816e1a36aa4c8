"""The members of a `.pt2` archive: JSON, and the raw numbers of tensors. Nothing is unpickled."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from outvote.core.archive import BROKEN
from outvote.core.arrays import Array, decoded
from outvote.core.model import Json
from outvote.dialects.torch_export.nouns.node import SCALAR_TYPES
from outvote.worker.main import Refused

_STRIDED = 7
# Where tensors lie, by what the configuration of the folder calls itself.
_FOLDERS = {"weights": "{}_weights_config.json", "constants": "{}_constants_config.json"}


class Archive:
    """One program and its tensors."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        try:
            self._zip = zipfile.ZipFile(path)
        except BROKEN as error:
            raise Refused(f"{path.name} is not a .pt2 archive: {error}") from error
        names = [PurePosixPath(name) for name in self._zip.namelist()]
        graphs = [n for n in names if len(n.parts) == 3 and n.parts[1] == "models"]
        if len(graphs) != 1:
            raise Refused(f"{path.name} is not a PyTorch program: it holds {len(graphs)} graphs")
        self._graph = graphs[0]
        self._root = graphs[0].parts[0]
        self._stored: dict[str, Array] = {}

    def program(self) -> Json:
        return self._json(str(self._graph))

    def tensors(self) -> dict[str, tuple[str, Json]]:
        """The folder and the description of every tensor, by its name in the module."""
        found = {}
        for folder, pattern in _FOLDERS.items():
            member = f"{self._root}/data/{folder}/{pattern.format(self._graph.stem)}"
            if member in self._zip.namelist():
                for name, told in self._json(member)["config"].items():
                    found[name] = (folder, told)
        return found

    def array(self, name: str, folder: str, told: Mapping[str, Any]) -> tuple[Array, str]:
        """A tensor by its description, and its type; what cannot be right is refused."""
        what = f"the tensor {name!r}"
        meta = told.get("tensor_meta")
        if told.get("use_pickle") or meta is None:
            raise Refused(f"{what} is pickled, and pickles are not opened; make it a plain tensor")
        dtype = SCALAR_TYPES.get(meta["dtype"])
        if dtype is None or meta["layout"] != _STRIDED:
            raise Refused(f"{what} has a type or layout that is not supported")
        flat = self._storage(f"{self._root}/data/{folder}/{told['path_name']}", dtype, what)
        return _strided(flat, meta, what), dtype

    def _storage(self, member: str, dtype: str, what: str) -> Array:
        key = f"{member} {dtype}"
        if key not in self._stored:
            if member not in self._zip.namelist():
                raise Refused(f"{what} lies in {member!r}, which the archive does not hold")
            raw = self._read(member)
            wire = np.dtype("<u2" if dtype == "bfloat16" else dtype).newbyteorder("<")
            if len(raw) % wire.itemsize:
                raise Refused(f"{what} takes {len(raw):,} bytes, no multiple of {wire.itemsize}")
            self._stored[key] = decoded(dtype, np.frombuffer(raw, wire))
        return self._stored[key]

    def _json(self, member: str) -> Json:
        try:
            return json.loads(self._read(member))
        except (ValueError, RecursionError) as error:
            raise Refused(f"{self._name}: {member} is not readable JSON: {error}") from error

    def _read(self, member: str) -> bytes:
        try:
            return self._zip.read(member)
        except (*BROKEN, KeyError) as error:
            raise Refused(f"{self._name}: {member} could not be read: {error}") from error


def _strided(flat: Array, meta: Mapping[str, Any], what: str) -> Array:
    """A view of a storage; it must lie inside it."""
    sizes = [number(n) for n in meta["sizes"]]
    strides = [number(n) for n in meta["strides"]]
    offset = number(meta["storage_offset"])
    if len(sizes) != len(strides) or any(n is None or n < 0 for n in (*sizes, *strides, offset)):
        raise Refused(f"{what} has the sizes {sizes} and the strides {strides}")
    last = offset + sum((n - 1) * m for n, m in zip(sizes, strides, strict=True))
    if not math.prod(sizes):
        return np.zeros(sizes, flat.dtype)
    if last >= flat.size or math.prod(sizes) > max(1, flat.size) * _MOST_EXPANDED:
        raise Refused(f"{what} of sizes {sizes} does not lie in its {flat.size:,} numbers")
    step = flat.itemsize
    view = np.lib.stride_tricks.as_strided(flat[offset:], sizes, [n * step for n in strides])
    return np.array(view, order="C")


_MOST_EXPANDED = 64  # how often a stored number may be repeated by strides of zero


def number(told: Any) -> Any:
    """A size that is known; None for one that is free."""
    found = told.get("as_int")
    return found if isinstance(found, int) else None
