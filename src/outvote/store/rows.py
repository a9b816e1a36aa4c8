"""What one mutant leaves in the store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Birth:
    """How a mutant came to be."""

    number: int
    parent: int
    rule: str
    seed: int
