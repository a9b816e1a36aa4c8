"""Differences that are meant or left open: a list of our own, as data (differences.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from outvote.core.model import Layer
from outvote.judge.observation import Observation

_FILE = Path(__file__).parent / "differences.toml"


@dataclass(frozen=True)
class Difference:
    """One listed difference: where it shows, and why it is no bug."""

    layers: tuple[str, ...]
    kinds: tuple[str, ...]
    reason: str
    link: str
    parameters: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return f"{self.reason} ({self.link})." if self.link else f"{self.reason}."

    def covers(self, layer: Layer, seen: Observation) -> bool:
        return (
            layer.kind in self.layers
            and seen.kind in self.kinds
            and all(layer.config.get(k) in values for k, values in self.parameters.items())
        )


def listed(layer: Layer, seen: Observation) -> Difference | None:
    """The entry that covers what shows on this layer."""
    return next((entry for entry in _all() if entry.covers(layer, seen)), None)


@cache
def _all() -> tuple[Difference, ...]:
    found = tomllib.loads(_FILE.read_text(encoding="utf-8"))["difference"]
    return tuple(
        Difference(
            tuple(entry["layers"]),
            tuple(entry["kinds"]),
            entry["reason"],
            entry.get("link", ""),
            entry.get("parameters", {}),
        )
        for entry in found
    )
