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
    """One listed difference: where it shows, and why it is no bug."""

    layers: tuple[str, ...]  # none: any
    kinds: tuple[str, ...]
    reason: str
    link: str
    parameters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    needs_nonfinite: bool = False  # in what the layer reads

    @property
    def text(self) -> str:
        return f"{self.reason} ({self.link})." if self.link else f"{self.reason}."

    def covers(self, specimen: Specimen, seen: Observation) -> bool:
        layer = specimen.last
        return (
            (not self.layers or layer.kind in self.layers)
            and seen.kind in self.kinds
            and (not self.needs_nonfinite or any(map(_is_odd, specimen.inputs)))
            and all(layer.config.get(k) in values for k, values in self.parameters.items())
        )


def _is_odd(array: Array) -> bool:
    return array.dtype.kind == "f" and not np.isfinite(array).all()


def listed(specimen: Specimen, seen: Observation) -> Difference | None:
    """The entry that covers what shows on this specimen."""
    return next(
        (entry for entry in _all(specimen.model.dialect) if entry.covers(specimen, seen)), None
    )


@cache
def _all(spoken: str) -> tuple[Difference, ...]:
    """The list of one dialect; one without a list means none of its differences."""
    file = dialect(spoken).folder / "differences.toml"
    if not file.exists():
        return ()
    found = tomllib.loads(file.read_text(encoding="utf-8"))["difference"]
    return tuple(
        Difference(
            tuple(entry.get("layers", ())),
            tuple(entry["kinds"]),
            entry["reason"],
            entry.get("link", ""),
            entry.get("parameters", {}),
            entry.get("inputs") == "non-finite",
        )
        for entry in found
    )
