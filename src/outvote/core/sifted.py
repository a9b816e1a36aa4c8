"""What comes out of a dialect's sieve: how many cases were tried, and which of them are suspicious.

The nouns between a wing's `sieve`, which tries cases by the thousand and compares them cheaply, and
the campaign, which looks into some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outvote.core.arrays import Array


@dataclass(frozen=True)
class CauseKey:
    """What a difference looks like at a glance; those of one key are taken to be of one cause."""

    family: str  # in which kind of layer, who leaves whom, and how: `Dense | torch: nan`
    detail: str = ""  # parameters, types, and the words of an error

    @property
    def subject(self) -> str:
        """What the family is about: a kind of layer, or a place in a library."""
        return self.family.partition(" | ")[0]

    @property
    def is_of_type(self) -> bool:
        """Whether nothing but types differ."""
        leaving = self.family.partition(" | ")[2]
        return bool(leaving) and all(who.endswith(": type") for who in leaving.split("; "))


@dataclass(frozen=True)
class SuspectCase:
    """A small case on which targets part, as its sieve writes it, and what it is fed."""

    key: CauseKey
    content: bytes
    inputs: tuple[Array, ...]


@dataclass(frozen=True)
class PartedCase:
    """A case that was tried, on which targets part.

    `cases`: the parts of it that show it, or itself; none where enough of its look were cut.
    """

    number: int
    key: CauseKey  # as the whole of it looks
    cases: tuple[SuspectCase, ...] = ()


@dataclass(frozen=True)
class Sifted:
    """What came of some cases of consecutive numbers."""

    first: int
    tested: int
    valid: int  # that some target could run
    suspects: tuple[PartedCase, ...] = ()
    inside: Mapping[str, float] = field(default_factory=dict)  # seconds inside each target
