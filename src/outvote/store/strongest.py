"""LEMON's counting (section 4.2): per seed, input and pair only the strongest inconsistency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outvote.core.arrays import Array

Key = tuple[int, str, str]  # root, target, target


@dataclass
class Strongest:
    """The largest D_MAD of each input: of the initial model, and of any mutant."""

    initial: dict[Key, Array] = field(default_factory=dict)
    mutants: dict[Key, Array] = field(default_factory=dict)

    def add(self, root: int, distances: Mapping[tuple[str, str], Array], *, first: bool) -> None:
        kept = self.initial if first else self.mutants
        for pair, values in distances.items():
            key = (root, *pair)
            kept[key] = np.maximum(kept[key], values) if key in kept else values

    def table(self, threshold: float) -> list[dict[str, Any]]:
        """Per seed and pair: inconsistencies, by whom, and the amplification (its table 5)."""
        rows = []
        for key, before in self.initial.items():
            after = self.mutants.get(key, np.zeros_like(before))
            by_mutants, by_initial = after > threshold, before > threshold
            either = by_mutants | by_initial
            mean_before = float(before[either].mean()) if either.any() else None
            mean_after = float(after[either].mean()) if either.any() else None
            rows.append(
                {
                    "root": key[0],
                    "targets": list(key[1:]),
                    "inconsistencies": int(either.sum()),
                    "mutants_only": int((by_mutants & ~by_initial).sum()),
                    "initial_only": int((by_initial & ~by_mutants).sum()),
                    "initial_mean": mean_before,
                    "mutants_mean": mean_after,
                    "amplification": _ratio(mean_before, mean_after),
                    "largest": float(after.max(initial=0.0)),
                }
            )
        return rows

    def state(self) -> dict[str, Any]:
        return {
            name: [[list(key), values.tolist()] for key, values in kept.items()]
            for name, kept in (("initial", self.initial), ("mutants", self.mutants))
        }

    @staticmethod
    def restored(state: Mapping[str, Any]) -> Strongest:
        def read(name: str) -> dict[Key, Array]:
            return {(k[0], k[1], k[2]): np.array(v) for k, v in state[name]}

        return Strongest(read("initial"), read("mutants"))


def _ratio(before: float | None, after: float | None) -> float | None:
    """How much larger, relative: 0.27 is 27 %."""
    if before is None or after is None or before == 0:
        return None
    return after / before - 1
