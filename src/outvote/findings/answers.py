"""`outputs.npz` of a finding: what each target gave for its case, to be looked at side by side.

Names of targets hold colons and slashes, which names of members must not: they are an array of
their own, and `t0_1` is the second output of the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import load_data
from outvote.core.errors import UsageError
from outvote.core.files import save_npz
from outvote.core.outputs import Outputs

FILE = "outputs.npz"
_MOST = 1 << 24  # bytes; what is not minimised may be a batch of whole pictures
_EXPECTED = "expected"


@dataclass(frozen=True)
class KeptAnswers:
    """The outputs of each target, and what they should be where that is known."""

    outputs: Mapping[str, tuple[Array, ...]]
    expected: tuple[Array, ...] = ()


def save_answers(folder: Path, outputs: Mapping[str, Outputs], expected: Outputs | None) -> None:
    """Keep them in the folder of a finding, unless they are too many to be looked at."""
    groups = [("t" + str(n), found) for n, found in enumerate(outputs.values())]
    groups += [(_EXPECTED, expected)] if expected is not None else []
    arrays = {f"{name}_{n}": a for name, found in groups for n, a in enumerate(found.arrays)}
    if outputs and sum(array.nbytes for array in arrays.values()) <= _MOST:
        save_npz(folder / FILE, {"targets": np.array(list(outputs)), **arrays})


def load_answers(folder: Path) -> KeptAnswers | None:
    """What the folder of a finding keeps; None where it keeps none."""
    path = folder / FILE
    if not path.is_file():
        return None
    arrays = load_data(path)
    if "targets" not in arrays:
        raise UsageError(f"{path} names no targets; it was not written by outvote")
    names = [str(name) for name in arrays["targets"].reshape(-1)]
    return KeptAnswers(
        {name: _numbered(arrays, f"t{place}") for place, name in enumerate(names)},
        _numbered(arrays, _EXPECTED),
    )


def _numbered(arrays: Mapping[str, Array], name: str) -> tuple[Array, ...]:
    found: list[Array] = []
    while (key := f"{name}_{len(found)}") in arrays:
        found.append(arrays[key])
    return tuple(found)
