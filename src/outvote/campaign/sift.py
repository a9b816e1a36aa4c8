"""A campaign on cases that the dialect draws and compares in bulk; suspects alone are judged.

Running new cases and looking into what they show share the time: looking gets what is over when
new cases have had theirs. Differences wait by what they look like, those like no other first.
Crews get stretches of the numbers, so that each goes on where it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, replace
from typing import Any

from outvote.bench.sieve import PACK
from outvote.campaign.crews import Brood, Crews, Deadly
from outvote.campaign.keeper import Keeper
from outvote.campaign.novelty import Novelty, Waiting
from outvote.campaign.numbers import Numbers
from outvote.campaign.orders import LookAt, Order, Sift
from outvote.campaign.report import Report
from outvote.campaign.rules import FREE
from outvote.campaign.totals import Totals
from outvote.core.sifted import Sifted, SuspectCase
from outvote.store import facts
from outvote.store.rows import Birth
from outvote.store.store import Store

SHARE = 0.3  # of the time, that looking into differences may take
_ROOT = 1
_SLICE = 10.0  # seconds between two points of the throughput over time
_STRETCH = 256 * PACK  # numbers: minutes of work, as a sieve begins anew with each


@dataclass
class SiftCounts:
    """What a campaign in bulk counts, as the store keeps it; seconds are of all crews together."""

    tested: int = 0
    valid: int = 0
    parted: int = 0  # on which targets part
    causes: int = 0  # keys that they have
    waiting: int = 0  # of those, not looked into
    sifting: float = 0.0  # seconds that new cases took
    looking: float = 0.0
    confirming: float = 0.0


@dataclass(eq=False)
class Allotment:
    """Numbers from one to another that nobody has tried yet."""

    at: int
    end: int


class Sifter:
    """Has crews run new cases, and look into some."""

    def __init__(self, crews: Crews, store: Store, totals: Totals, keeper: Keeper) -> None:
        self._crews, self._store, self._totals, self._keeper = crews, store, totals, keeper
        self.counts = SiftCounts(**store.fact(facts.SIFTED) or {})
        self._series: list[list[float]] = store.fact(facts.SIFTED_OVER_TIME)
        self._novelty: Novelty[SuspectCase] = Novelty()
        self._numbers = Numbers(store.numbers())
        left = store.fact(facts.SIFTED_LEFT) or [[self.counts.tested, None]]
        *begun, (self._next, _) = left
        self._left = [Allotment(*both) for both in begun]  # begun by somebody, at work or not
        self._idle = list(self._left)
        self._shown: dict[str, Waiting[SuspectCase]] = {}  # by fingerprint: what showed it

    def brood(self, goes_on: Callable[[], bool], watch: Callable[[], None]) -> Brood:
        """A stretch of new cases with looks between them, as long as the campaign goes on.

        What is left of it when that ends is of whoever comes next.
        """
        stretch = self._idle.pop(0) if self._idle else self._begun()
        while stretch.at < stretch.end and goes_on():
            yield from self._generation(stretch)
            watch()
        if stretch.at < stretch.end:
            self._idle.append(stretch)
        else:
            self._left.remove(stretch)

    def find_again(self, lost: Collection[str]) -> list[Brood]:
        """What no crew has at hand, because who found it is gone, is met by another first."""
        cases = {one.number: one for name, one in self._shown.items() if name in lost}

        def look(one: Waiting[SuspectCase]) -> Brood:
            birth = self._birth(one)
            yield from _settled(LookAt(one.case, birth))
            self._numbers.give_back(birth.number)  # nothing of it is stored again

        return [look(one) for one in cases.values()]

    def confirming(self, seconds: float) -> None:
        self.counts.confirming += seconds
        with self._store.transaction():
            self._note()

    def _begun(self) -> Allotment:
        stretch = Allotment(self._next, self._next + _STRETCH)
        self._next = stretch.end
        self._left.append(stretch)
        return stretch

    def _generation(self, stretch: Allotment) -> Brood:
        """About a second of new cases, then a look or more, as far as the time allows."""
        began = time.monotonic()
        sifted = yield from _settled(Sift(stretch.at, stretch.end))
        # Cases of which crew after crew dies count as tried: they are not given out again.
        sifted = sifted or Sifted(stretch.at, PACK, 0)
        stretch.at += sifted.tested
        self.counts.sifting += time.monotonic() - began
        with self._store.transaction():
            self._count(sifted)
            self._note()
        while self.counts.looking <= SHARE * (self.counts.looking + self.counts.sifting):
            one = self._novelty.next()
            if one is None:
                break
            began = time.monotonic()
            yield from self._look(one)
            self.counts.looking += time.monotonic() - began
            with self._store.transaction():
                self._note()

    def _count(self, sifted: Sifted) -> None:
        counts = self.counts
        counts.tested += sifted.tested
        counts.valid += sifted.valid
        counts.parted += len(sifted.suspects)
        self._totals.tested, self._totals.valid = counts.tested, counts.valid
        for suspect in sifted.suspects:
            for fingerprint in self._novelty.add(suspect.number, suspect.key, suspect.cases):
                self._keeper.met(fingerprint)
        at = self._totals.seconds
        if not self._series or at - self._series[-1][0] >= _SLICE:
            self._series.append([round(at, 1), counts.tested])

    def _look(self, one: Waiting[SuspectCase]) -> Brood:
        """The case on every target, by the same judge as every mutant."""
        birth = self._birth(one)
        answer: list[Report | None] | None = yield from _settled(LookAt(one.case, birth))
        report = answer[0] if answer else None
        if report is None:
            self._numbers.give_back(birth.number)
            self._novelty.looked(one, (), False)
            return
        known = set(self._keeper.known)
        with self._store.transaction():
            self._store.add(replace(report.row, at=self._totals.seconds))
            self._keeper.keep(report.row.number, report.findings, report.again)
        self._totals.rounding += report.rounding
        if report.valid:
            self._totals.seen(report)
        shown = report.fingerprints | report.again
        self._shown |= dict.fromkeys(report.fingerprints - known, one)
        self._novelty.looked(one, shown, bool(report.fingerprints - known))

    def _birth(self, one: Waiting[SuspectCase]) -> Birth:
        return Birth(self._numbers.take(), _ROOT, FREE, one.number)

    def _note(self) -> None:
        """Where all stand, in the transaction that is open."""
        self.counts.causes = len(self._novelty.met)
        self.counts.waiting = self._novelty.waiting
        left = [*([one.at, one.end] for one in self._left), [self._next, None]]
        self._store.note(facts.SIFTED, vars(self.counts))
        self._store.note(facts.SIFTED_OVER_TIME, self._series)
        self._store.note(facts.SIFTED_LEFT, left)
        self._totals.note(self._crews.standing)


def _settled(order: Order) -> Generator[Order, Any, Any]:
    """What a crew answers; None where crew after crew dies of the order."""
    try:
        return (yield order)
    except Deadly:
        return None
