"""What goes between a campaign, which writes the store, and its crews, which run the targets.

Plain data both ways: a crew may be this process or one on another machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from outvote.campaign.oracle import Pair
from outvote.core.arrays import Array
from outvote.core.protocol import LinesReached
from outvote.core.sifted import CauseKey
from outvote.store.store import Row


@dataclass(frozen=True)
class ToldFinding:
    """A finding as the store keeps it; its folder is written before it is told."""

    fingerprint: str
    title: str
    data: Mapping[str, Any]  # none where the store has it already


@dataclass(frozen=True)
class Report:
    """What came of one trial."""

    row: Row  # all but whether it joined, and when: the campaign says that
    mad: Mapping[Pair, Array]  # D_MAD of each pair, by input; none where it does not count
    findings: tuple[ToldFinding, ...] = ()
    again: frozenset[str] = frozenset()  # fingerprints of findings seen once more
    rounding: bool = False
    accepted: str = ""  # the illegal value that no target refused
    kinds: tuple[str, ...] = ()  # of the layers that are new
    values: tuple[str, ...] = ()  # kind, parameter and class of its value
    odd: CauseKey | None = None  # how what is not looked into yet looks: targets part, or fail
    beside: CauseKey | None = None  # and how those part who do not fail, where some do
    is_new_odd: bool = False  # what is odd is new with it
    repeatable: bool = True  # it can be made again from its birth
    counts: bool = True  # it is on the inputs of its seed: only then may it breed
    cost: int = 1  # requests to every target until it was there, and its own
    # By target: lines of its library that a worker, then the campaign, had not run before.
    lines: Mapping[str, LinesReached] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()  # what an oracle could not look at, in sentences
    looking: float = 0.0  # seconds that a look took

    @property
    def valid(self) -> bool:
        """Whether it was a test of any target."""
        return self.row.outcome != "invalid"

    def showing(self, again: frozenset[str]) -> Report:
        """The same, and findings that it shows once more."""
        row = replace(self.row, inconsistent=self.row.inconsistent or bool(again))
        return replace(self, row=row, again=self.again | again)

    @property
    def fingerprints(self) -> frozenset[str]:
        return frozenset(told.fingerprint for told in self.findings)


@dataclass(frozen=True)
class Opening:
    """What a crew is: its targets, the seeds that they can run, and what these show."""

    heads: Mapping[str, Any]  # of the targets, as results hold them
    kinds: tuple[str, ...]  # of layers that can be drawn
    not_covered: Mapping[str, str]  # what cannot, and why
    initial: tuple[Report, ...]  # of the seeds; none where the campaign has them


@dataclass(frozen=True)
class Sitting:
    """What workers and rules came to since a crew began, under the store's names."""

    flaky: int = 0  # deaths that did not repeat
    recycled: int = 0  # workers replaced because they had grown
    restarts: Mapping[str, int] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)  # seconds inside each target
    making: float = 0.0  # seconds
    looking: float = 0.0
    looks: int = 0
    refused_draws: int = 0

    def __add__(self, other: Sitting) -> Sitting:
        return Sitting(**{key: added(own, vars(other)[key]) for key, own in vars(self).items()})


@dataclass(frozen=True)
class Standing:
    """What a crew has come to, or all of a campaign together."""

    sitting: Sitting = field(default_factory=Sitting)
    peaks: Mapping[str, int] = field(
        default_factory=dict
    )  # bytes that a worker of each target held at most

    def __add__(self, other: Standing) -> Standing:
        peaks = dict(Counter(self.peaks) | Counter(other.peaks))  # of each the larger one
        return Standing(self.sitting + other.sitting, peaks)


def added(one: Any, other: Any) -> Any:
    """The sum of two numbers, or of two dicts of numbers by their keys."""
    if isinstance(other, Mapping):
        return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}
    return one + other
