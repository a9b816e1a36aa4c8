"""How mutants come to be, as the store keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Birth:
    """How a mutant came to be."""

    number: int
    parent: int
    rule: str
    seed: int


ASKED, TOLD, VAIN, LOOKED = "asked", "told", "vain", "looked"


@dataclass(frozen=True)
class Turn:
    """What happened between a campaign and its strategy: it asked, or was told what came of it."""

    # It asked for a birth, was told of its mutant, or that its rule was in vain; or the mutant was
    # looked into.
    what: str
    birth: Birth
    by: str = ""  # the strategy that chose, where several do
    told: tuple[Any, ...] = ()  # what it was told of a mutant: the fields of an `Offspring`


@dataclass(frozen=True)
class Reached:
    """Lines of a library's own Python that a mutant was the first to reach in a target."""

    number: int
    target: str
    at: float  # seconds since the campaign began
    files: Mapping[str, Sequence[int]]  # path of a file inside its library: numbers of lines

    @property
    def count(self) -> int:
        return sum(len(lines) for lines in self.files.values())
