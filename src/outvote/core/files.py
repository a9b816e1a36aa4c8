"""Writes files whole or not at all, and arrays as `.npz` on every NumPy."""

from __future__ import annotations

import os
import secrets
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from outvote.core.arrays import Array


def write_atomically(path: Path, content: str | Callable[[BinaryIO], object]) -> Path:
    """Replace `path` by a text, or by what a function writes; the folder is made if needed.

    A reader sees the old content or the new, never half of it; an error leaves the old one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name[:200]}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with half.open("xb") as file:
            if isinstance(content, str):
                # Messages of crashed processes may hold bytes that are no text: shown, not failed.
                file.write(content.encode("utf-8", "backslashreplace"))
            else:
                content(file)
        half.replace(path)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    return path


def save_npz(path: Path, arrays: Mapping[str, Array], compressed: bool = False) -> Path:
    """An `.npz` file of these arrays and no other, atomically and without pickle.

    `np.savez(allow_pickle=False)` adds an array of that name before NumPy 2.2, and takes no array
    whose name is one of its own parameters.
    """

    def write(file: BinaryIO) -> None:
        method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(file, "w", method) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)

    return write_atomically(path, write)


def named_inputs(inputs: tuple[Array, ...] | list[Array]) -> dict[str, Array]:
    """Inputs under the names that data files give them: x, or x0, x1, … where there are several."""
    if len(inputs) == 1:
        return {"x": inputs[0]}
    return {f"x{i}": array for i, array in enumerate(inputs)}
