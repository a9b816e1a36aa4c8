"""Odd cases that wait to be looked into, so that a campaign's time goes to searching.

A look runs the layer alone, makes it small and judges it, which takes seconds where a new case
takes a fraction of one. So what is odd is known by a cheap key at first; the least known is looked
into in a share of the time, and the rest after the end of the budget, as far as time allows.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from outvote.campaign.equipment import Equipment
from outvote.campaign.family import Family, Lost
from outvote.campaign.novelty import Novelty, Waiting
from outvote.campaign.odd import key_of
from outvote.campaign.oracle import Judged
from outvote.campaign.trial import Mutant
from outvote.core.sifted import CauseKey
from outvote.store import facts
from outvote.store.rows import Birth

SHARE = 0.3  # of the time, that looks may take while new cases are run
MOST = 0.4  # of all time, with what is looked into after the end
AFTER = 60.0  # seconds after the end, that looks may take in any case
_MOST_TOLD = 50  # keys of what waits, in the store


@dataclass(frozen=True)
class OddCase:
    """A mutant on which targets part, and what that looks like."""

    key: CauseKey
    trial: Mutant


@dataclass(frozen=True)
class Taken:
    """What a docket knows of a case that it took in."""

    again: frozenset[str]  # findings that it shows again, by what it looks like
    is_new: bool  # nothing that was met before looks like it


class Docket:
    """Takes in what is odd, and looks into it when there is time."""

    def __init__(self, equipment: Equipment, family: Family) -> None:
        self._has = equipment
        self._family = family
        self._package = equipment.job.targets[0].package
        self._novelty: Novelty[OddCase] = Novelty(most_vain=None)
        self._alike: dict[CauseKey, list[int]] = defaultdict(list)  # numbers of further mutants
        self._began = time.monotonic()
        self.seconds = 0.0  # that looks took, in this sitting
        self._recall()

    def add(self, trial: Mutant, odd: Judged) -> Taken:
        """Take in a mutant on which targets part.

        What looks like something that waits already is counted when that was looked into.
        """
        key = key_of(trial.subject.model, odd, self._package)
        is_new = key not in self._novelty.met
        again = self._novelty.add(trial.number, key, [OddCase(key, trial)])
        if not is_new and not again:
            self._alike[key].append(trial.number)
        return Taken(again, is_new)

    def work(self) -> None:
        """Look into what is new, within the share of the time."""
        while self.seconds <= SHARE * (time.monotonic() - self._began) and self._look():
            pass

    def finish(self, onlooker: Callable[[], None]) -> None:
        """The budget is spent: look into what waits; all of it, where no time was set."""
        ended, before = time.monotonic(), self.seconds
        timed = self._has.job.budget.seconds is not None
        while True:
            spent, total = self.seconds - before, time.monotonic() - self._began
            if timed and spent > AFTER and self.seconds > MOST * total:
                break
            if not self._look():
                break
            onlooker()
        self._has.totals.looking_after += time.monotonic() - ended
        with self._has.store.transaction():
            self._has.note_totals()

    @property
    def digests(self) -> set[str]:
        """Weights and inputs of what waits: they must stay."""
        waiting = [one.case.trial for one in self._novelty.cases]
        found = {digest for trial in waiting for digest in trial.seed.inputs}
        for trial in waiting:
            found |= {w.digest for layer in trial.subject.model.layers for w in layer.weights}
        return found

    def _look(self) -> bool:
        one = self._novelty.next()
        if one is None:
            return False
        began = time.monotonic()
        self._look_into(one)
        self.seconds += time.monotonic() - began
        return True

    def _look_into(self, one: Waiting[OddCase]) -> None:
        has, trial = self._has, one.case.trial
        (runs,) = has.runner.run([trial])
        answered = trial.looked_into(runs, has.lab)
        concluded = answered.conclusion
        shown = concluded.fingerprints | concluded.again
        self._novelty.looked(one, shown, bool(concluded.fingerprints - has.keeper.known))
        has.totals.rounding += concluded.rounding
        alike = self._alike.pop(one.case.key, [])
        with has.store.transaction():
            has.keeper.keep(trial.number, trial.subject.model, concluded)
            for number in alike:
                has.keeper.again(number, shown)
            if shown:
                for number in (trial.number, *alike):
                    has.store.shows_finding(number)
            self.note()

    def note(self) -> None:
        """What waits, in the transaction that is open."""
        waiting = self._novelty.cases
        numbers = [one.number for one in waiting if one.case.trial.repeatable]
        self._has.store.note(facts.WAITING, numbers)
        self._has.store.note(
            facts.WAITING_KINDS,
            [
                [one.case.key.family, self._novelty.met[one.case.key]]
                for one in waiting[:_MOST_TOLD]
            ],
        )

    def _recall(self) -> None:
        """What waited when an earlier sitting ended is made and run again."""
        births = self._has.store.births()
        for number in self._has.store.fact(facts.WAITING):
            trial = self._made_again(births[number])
            if trial is not None:
                (runs,) = self._has.runner.run([trial])
                odd = trial.answered(runs, self._has.lab).odd
                if odd is not None:
                    self.add(trial, odd)

    def _made_again(self, birth: Birth) -> Mutant | None:
        try:
            return self._family.propose(birth)
        except Lost:
            return None
