"""Odd cases that wait to be looked into, so that a campaign's time goes to searching.

A look runs the layer alone, makes it small and judges it, which takes seconds where a new case
takes a fraction of one. So what is odd is known by a cheap key at first; the least known is looked
into in a share of the time, and the rest after the end of the budget, as far as time allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from outvote.campaign.keeper import Keeper
from outvote.campaign.novelty import Novelty, Waiting
from outvote.campaign.report import Report
from outvote.campaign.totals import Totals
from outvote.core.sifted import CauseKey
from outvote.store import facts
from outvote.store.rows import Birth
from outvote.store.store import Store

SEARCHING = 0.6  # of all time, that new cases have: the rest is of looks and of confirming
SHARE = 0.36  # of the time, that looks may take while new cases are run
CONFIRMING = 0.08  # of it, that is kept for confirming what is found
AFTER = 0.02  # of it, that looks may take beyond their share after the end of the budget
_MOST_TOLD = 50  # keys of what waits, in the store


@dataclass(frozen=True)
class OddCase:
    """A mutant on which targets part, and what that looks like."""

    key: CauseKey
    birth: Birth
    repeatable: bool = True
    beside: CauseKey | None = None  # how else, where what fails hides it


@dataclass(frozen=True)
class Taken:
    """What a docket knows of a case that it took in."""

    again: frozenset[str]  # findings that it shows again, by what it looks like
    is_new: bool  # nothing that was met before looks like it


class Docket:
    """Takes in what is odd, and says what is to be looked into when there is time."""

    def __init__(self, store: Store, keeper: Keeper, totals: Totals, confirms: bool) -> None:
        self._store, self._keeper, self._totals = store, keeper, totals
        self._share = SHARE - CONFIRMING * confirms
        self._novelty: Novelty[OddCase] = Novelty(most_vain=None)
        self._novelty.recall(
            {CauseKey(*key): frozenset(shown) for key, shown in store.fact(facts.LOOKED_INTO)}
        )
        self._first: dict[CauseKey, int] = {}  # number of what waits, or is being looked into
        self._alike: list[tuple[int, int]] = []  # [that, one like it], not stored yet
        self._under_way: list[Waiting[OddCase]] = []  # that crews are looking into
        self._left: dict[int, None] = {}  # by an earlier sitting, and not taken in yet
        self.looks = 0.0  # seconds that looks took, of all crews, in this sitting
        self.searches = 0.0  # and the rest of their time

    def add(self, case: OddCase) -> Taken:
        """Take in a mutant on which targets part.

        What looks like something that waits already is counted when that was looked into. A look
        shows all of a mutant; where one at its failures is of another mutant, the rest waits.
        """
        rest = self._rest_of(case)
        if rest is None:
            return self._taken(case)
        failing, other = self._taken(case), self._taken(rest)
        return Taken(failing.again | other.again, other.is_new)

    def _rest_of(self, case: OddCase) -> OddCase | None:
        """What it is besides its failures, where these are known or wait for a look at another."""
        number = case.birth.number
        is_met = self._novelty.knows(case.key) or self._first.get(case.key, number) != number
        return replace(case, key=case.beside, beside=None) if case.beside and is_met else None

    def _taken(self, case: OddCase) -> Taken:
        number = case.birth.number
        is_new = case.key not in self._novelty.met
        again = self._novelty.add(number, case.key, [case])
        if not self._novelty.knows(case.key):
            first = self._first.setdefault(case.key, number)
            if first != number:
                self._alike.append((first, number))
        return Taken(again, is_new)

    def expect(self, numbers: Iterable[int]) -> None:
        """Mutants that an earlier sitting did not get to; they wait until they are run again."""
        self._left = dict.fromkeys(numbers)

    def show_again(self, number: int, shown: frozenset[str]) -> None:
        """Of those, one that needs no look: what was found since explains it, if anything does."""
        self._left.pop(number, None)
        self._keeper.again(number, shown)
        self._shows(number, shown)

    def add_again(self, case: OddCase) -> None:
        """Take in one of those, and what looks like it."""
        number, waits = case.birth.number, self._rest_of(case) or case
        self._left.pop(number, None)
        taken = self.add(case)
        if self._novelty.knows(waits.key):  # since others like it were run
            self.show_again(number, taken.again)
        elif (first := self._first[waits.key]) != number:
            self._alike += [(first, other) for other in self._store.take_alike(number)]

    @property
    def is_due(self) -> bool:
        """Whether looks have had less than their share of the time."""
        return self.looks < self._share * (self.looks + self.searches)

    @property
    def is_over(self) -> bool:
        """Whether looks have had enough, when no more new cases are run."""
        return self.looks > (self._share + AFTER) * (self.looks + self.searches)

    @property
    def left(self) -> float:
        """Seconds that are left for confirming what was found, of all crews."""
        return max(0.0, self.searches / SEARCHING - self.searches - self.looks)

    def next(self, number: int | None = None) -> Waiting[OddCase] | None:
        """What is to be looked into, or the mutant of that number; None where nothing waits."""
        one = self._novelty.next() if number is None else self._novelty.pick(number)
        if one is not None:
            self._under_way.append(one)
        return one

    def looked(self, one: Waiting[OddCase], report: Report | None) -> None:
        """Store what came of a look, in the transaction that is open."""
        self._under_way.remove(one)
        shown: frozenset[str] = frozenset()
        is_new = False
        if report is not None:
            shown = report.fingerprints | report.again
            is_new = bool(report.fingerprints - self._keeper.known)
            self._totals.rounding += report.rounding
            self._keeper.keep(one.number, report.findings, report.again)
        self._novelty.looked(one, shown, is_new)
        self._first.pop(one.case.key, None)
        self._note_alike()
        self._shows(one.number, shown)
        led_to = self._novelty.led_to.items()
        told = [[[key.family, key.detail], sorted(found)] for key, found in led_to]
        self._store.note(facts.LOOKED_INTO, told)

    def _shows(self, number: int, shown: frozenset[str]) -> None:
        """What a mutant shows, those that look like it show again."""
        alike = self._store.take_alike(number)
        for other in alike:
            self._keeper.again(other, shown)
        if shown:
            for one in (number, *alike):
                self._store.shows_finding(one)

    def _note_alike(self) -> None:
        for first, number in self._alike:
            self._store.alike(first, number)
        self._alike = []

    @property
    def numbers(self) -> list[int]:
        """Of what waits, and of what is being looked into."""
        return [one.number for one in self._waiting]

    @property
    def _waiting(self) -> list[Waiting[OddCase]]:
        return [*self._under_way, *self._novelty.cases]

    def note(self) -> None:
        """What waits, in the transaction that is open."""
        kept = [one for one in self._waiting if one.case.repeatable]
        waiting = dict.fromkeys([*self._left, *(one.number for one in kept)])
        self._store.note(facts.WAITING, list(waiting))
        self._note_alike()
        self._store.note(
            facts.WAITING_KINDS,
            [
                [one.case.key.family, self._novelty.met[one.case.key]]
                for one in self._waiting[:_MOST_TOLD]
            ],
        )
