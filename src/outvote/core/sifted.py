"""What comes out of a dialect's sieve: how many cases were tried, and which of them are suspicious.

The nouns between a wing's `sieve`, which tries cases by the thousand and compares them cheaply, and
the campaign, which looks into some of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from outvote.core.arrays import Array
from outvote.core.target import Outcome

_NANS = {"nan"}
_FAILURES = {outcome.value for outcome in Outcome}
_UNUSUAL = re.compile(r"float(16|8|64)")  # bfloat16, and what computes in it, are of these


@dataclass(frozen=True)
class CauseKey:
    """What a difference looks like at a glance; those of one key are taken to be of one cause."""

    family: str  # in which kind of layer, who leaves whom, and how: `Dense | torch: nan`
    detail: str = ""  # parameters, types, and the words of an error

    @property
    def subject(self) -> str:
        """The kind of layer that the family is about; empty where that is a place in a library."""
        subject, bar, _ = self.family.partition(" | ")
        return subject if bar else ""

    @property
    def parts(self) -> tuple[str, ...]:
        """Who leaves whom where and how, one by one; of failures the place, whoever fails there,
        and the words of the error, whatever kind of layer fails."""
        subject, bar, leaving = self.family.partition(" | ")
        if bar:
            return tuple(f"{subject} | {who}" for who in leaving.split("; "))
        places = [part.partition(": ")[2] or part for part in subject.split("; ")]
        said = [words.partition(": ")[2] for words in self.detail.split(" | ")]
        return tuple(": ".join(both) for both in zip_longest(places, said, fillvalue=""))

    @property
    def symptom(self) -> str:
        """What a user would see of it, the most harmful part first."""
        ways = self._ways
        if ways - _NANS - _FAILURES:
            return "values"
        return "nan" if ways & _NANS else "failure"

    @property
    def is_faint(self) -> bool:
        """Whether nothing but types differ, or numbers in types that hold few digits, or in which
        not every library computes."""
        if self._ways <= {"type"}:
            return True
        unusual = _UNUSUAL.search(self.detail) is not None
        return unusual and self._ways <= {"type", "inconsistency"}

    @property
    def _ways(self) -> set[str]:
        if " | " not in self.family:
            return {"error"}
        return {part.rpartition(": ")[2] for part in self.parts}


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
