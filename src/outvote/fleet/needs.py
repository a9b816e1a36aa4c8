"""What a crew or a target takes of a node, so that Ray places it where that is free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from outvote.core.target import Target


@dataclass(frozen=True)
class Needs:
    """Of one crew."""

    cpus: int = 1
    memory: int = 0  # bytes; 0: none are declared
    gpus: int = 0

    @staticmethod
    def of(targets: Iterable[Target], jobs: int | None, memory: int | None) -> Needs:
        """A processor for each target at work at once, the memory that workers may hold, a GPU."""
        named = list(targets)
        return Needs(
            min(jobs or len(named), len(named)),
            (memory or 0) * len(named),
            int(any(target.device for target in named)),
        )

    @property
    def options(self) -> dict[str, Any]:
        """As Ray's actors are told."""
        told: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        return {**told, **({"memory": self.memory} if self.memory else {})}

    @property
    def told(self) -> str:
        parts = [f"{self.cpus} CPUs"]
        parts += [f"{self.memory / 2**30:.3g} GiB of memory"] if self.memory else []
        return ", ".join([*parts, *([f"{self.gpus} GPU"] if self.gpus else [])])

    def fit_into(self, resources: Mapping[str, float]) -> int:
        """How many of it a node holds, by what Ray says that it has."""
        wanted = {"CPU": self.cpus, "memory": self.memory, "GPU": self.gpus}
        rooms = [resources.get(name, 0.0) / need for name, need in wanted.items() if need]
        return math.floor(min(rooms))
