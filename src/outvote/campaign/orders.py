"""What a campaign asks of a crew: plain data, which may travel, and the deed that it stands for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from outvote.core.sifted import SuspectCase
from outvote.store.rows import Birth
from outvote.store.store import Sample

if TYPE_CHECKING:
    from outvote.campaign.crew import Crew


class Order(Protocol):
    """`doing`: a word for those who watch."""

    @property
    def doing(self) -> str: ...

    def by(self, crew: Crew) -> Any:
        """What the crew answers."""
        ...


@dataclass(frozen=True)
class Begin:
    """Say what the crew is, and try the seeds unless the campaign has `begun` with them."""

    begun: bool
    doing: ClassVar[str] = "opening"

    def by(self, crew: Crew) -> Any:
        return crew.opening(self.begun)


@dataclass(frozen=True)
class OfBirths:
    """Of births, with how their ancestors came to be: a crew may never have heard of them."""

    births: tuple[Birth, ...]
    ancestors: tuple[Birth, ...]


@dataclass(frozen=True)
class Make(OfBirths):
    doing: ClassVar[str] = "make"

    def by(self, crew: Crew) -> Any:
        return crew.make(self.births, self.ancestors)


@dataclass(frozen=True)
class TryOut(OfBirths):
    doing: ClassVar[str] = "attempt"

    def by(self, crew: Crew) -> Any:
        return crew.attempt(self.births, self.ancestors)


@dataclass(frozen=True)
class Look(OfBirths):
    doing: ClassVar[str] = "look"

    def by(self, crew: Crew) -> Any:
        return crew.look(self.births, self.ancestors)


@dataclass(frozen=True)
class Sift:
    """New cases in bulk, from a number on: about a second's, as far as the stretch goes."""

    first: int
    end: int
    doing: ClassVar[str] = "sift"

    def by(self, crew: Crew) -> Any:
        return crew.sift(self.first, self.end)


@dataclass(frozen=True)
class LookAt:
    """Look into a case that came out of a sieve, as the mutant of that birth."""

    case: SuspectCase
    birth: Birth
    doing: ClassVar[str] = "look"

    def by(self, crew: Crew) -> Any:
        return crew.look_at(self.case, self.birth)


@dataclass(frozen=True)
class Settle:
    """A generation is stored: who may breed, what waits (the next one first), and under which
    number to measure.
    """

    joined: Collection[int]
    waiting: Sequence[int]
    sampled: int | None
    doing: ClassVar[str] = "settle"

    def by(self, crew: Crew) -> Any:
        return crew.settle(self.joined, self.waiting, self.sampled)


@dataclass(frozen=True)
class FindDrifts:
    samples: Sequence[Sample]
    doing: ClassVar[str] = "drifts"

    def by(self, crew: Crew) -> Any:
        return crew.drifts(self.samples)


@dataclass(frozen=True)
class Confirm:
    times: int
    fingerprints: Collection[str]
    seconds: float | None  # that there are for it
    doing: ClassVar[str] = "confirm"

    def by(self, crew: Crew) -> Any:
        return crew.confirm(self.times, self.seconds, self.fingerprints)
