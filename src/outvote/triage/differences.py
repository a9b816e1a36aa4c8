"""Differences that are meant or left open: a list of our own, as data (differences.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.specimen import Specimen
from outvote.judge.observation import Observation


@dataclass(frozen=True)
class Difference:
    """One listed difference: where it shows, why it is no bug, and where that is written."""

    layers: tuple[str, ...]
    kinds: tuple[str, ...]
    reason: str
    link: str
    parameters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    reads_nan: bool = False  # only where an input holds NaN
    reads_extremes: bool = False  # only where an input holds integers near the ends of its type
    off_by_one: bool = False  # only where whole numbers differ by one at most

    @property
    def text(self) -> str:
        return f"{self.reason} ({self.link})."

    def covers(self, specimen: Specimen, seen: Observation) -> bool:
        layer = specimen.last
        return (
            layer.kind in self.layers
            and seen.kind in self.kinds
            and all(layer.config.get(k) in values for k, values in self.parameters.items())
            and (not self.reads_nan or any(map(_holds_nan, specimen.inputs)))
            and (not self.reads_extremes or any(map(_holds_extremes, specimen.inputs)))
            and (not self.off_by_one or _is_off_by_one(seen))
        )


def _holds_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _holds_extremes(array: Array) -> bool:
    if array.dtype.kind not in "iu" or not array.size:
        return False
    most = np.iinfo(array.dtype).max >> 2
    return int(array.max()) > most or int(array.min()) < -most


def _is_off_by_one(seen: Observation) -> bool:
    """Whether targets give whole numbers that are the same but for the last unit."""
    first, *others = (found.arrays for found in seen.outputs.values())
    return all(
        a.shape == b.shape and a.dtype.kind in "iu" and _apart(a, b) <= 1
        for arrays in others
        for a, b in zip(first, arrays, strict=False)
    )


def _apart(a: Array, b: Array) -> float:
    return float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0.0))


def listed(specimen: Specimen, seen: Observation) -> Difference | None:
    """The entry that covers what shows on this specimen."""
    return next(
        (entry for entry in differences_of(specimen.model.dialect) if entry.covers(specimen, seen)),
        None,
    )


@cache
def differences_of(spoken: str) -> tuple[Difference, ...]:
    """The list of one dialect; one without a list means none of its differences."""
    file = dialect(spoken).folder / "differences.toml"
    if not file.exists():
        return ()
    found = tomllib.loads(file.read_text(encoding="utf-8"))["difference"]
    return tuple(
        Difference(
            tuple(entry["layers"]),
            tuple(entry["kinds"]),
            entry["reason"],
            entry["link"],
            entry.get("parameters", {}),
            entry.get("reads_nan", False),
            entry.get("reads_extremes", False),
            entry.get("off_by_one", False),
        )
        for entry in found
    )
