"""How mutants come to be, as the store keeps it."""

from __future__ import annotations

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
