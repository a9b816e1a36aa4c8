"""The loop: ask the strategy, run the mutants, judge, tell the strategy; now and then, look.

A generation is a handful of mutants: all are asked for, run and judged, then the strategy is
told of them in order. It is stored in one transaction, together with the strategy's state. What is
odd waits in a docket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outvote.campaign.docket import Docket
from outvote.campaign.equipment import Equipment, Tried, equipped
from outvote.campaign.family import Family, Lost
from outvote.campaign.investigate import Conclusion
from outvote.campaign.job import FuzzJob
from outvote.campaign.probes.prober import PROBES, Prober
from outvote.campaign.rules import chosen_rules
from outvote.campaign.sift import Sifter
from outvote.campaign.trial import Answered, Mutant, Trial, row_of
from outvote.core.errors import UsageError
from outvote.core.events import MutantsTested
from outvote.core.target import Run
from outvote.run.pool import Pool
from outvote.search.registry import strategy
from outvote.search.strategy import Choice, Experience, Offspring
from outvote.store import facts
from outvote.store.rows import Birth
from outvote.store.store import Sample, Store
from outvote.store.strongest import Strongest

_TRIES = 2000  # rules that do not apply, one after the other, before we give up
_CANARY = 50  # mutants between two runs of the seed that measure time and memory


@dataclass(frozen=True)
class Progress:
    """What a person wants to see while it runs."""

    tested: int = 0
    valid: int = 0
    rounding: int = 0
    seconds: float = 0.0
    findings: int = 0
    best: float = 0.0  # the largest ACC of a mutant over its seed's
    rules: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # used, succeeded
    share: float = 0.0  # of the budget
    last: str = ""  # title of the newest finding
    kinds: int = 0  # of layers that could be drawn and were run
    values: int = 0  # classes of parameters' values that were run

    @property
    def told(self) -> MutantsTested:
        """The same for those who follow the store."""
        return MutantsTested(
            self.tested,
            self.valid,
            self.findings,
            seconds=round(self.seconds, 3),
            share=round(self.share, 4),
            kinds=self.kinds,
            values=self.values,
        )


Onlooker = Callable[[Progress], None]


def run_campaign(
    job: FuzzJob,
    pool: Pool,
    store: Store,
    out: Path,
    onlooker: Onlooker = lambda progress: None,
) -> bool:
    """Begin a campaign or go on with it; False when the user stopped it."""
    return Campaign(equipped(job, pool, store, out)).run(onlooker)


@dataclass(frozen=True)
class Bred:
    """A choice of the strategy, and what was made of it."""

    choice: Choice
    trial: Trial


class Campaign:
    """A campaign that has begun; it stands where its store stands."""

    def __init__(self, equipment: Equipment) -> None:
        job, store = equipment.job, equipment.store
        rows = store.rows()
        self._has = equipment
        self._job = job
        self._totals = equipment.totals
        self._rules = chosen_rules(job.rules, job.dialect)
        self._family = Family(equipment.seeds, store.births(), self._rules, equipment.tools)
        self._prober = Prober(job, equipment.pool, equipment.runner.names, equipment.tools)
        self._strategy = strategy(job.strategy, Experience.restored(store.fact(facts.STATE)))
        self._strongest = Strongest.restored(store.fact(facts.STRONGEST))
        self._accs = {row.number: row.acc or 0.0 for row in rows if row.rule is None}
        self._next = max(row.number for row in rows) + 1
        self._sifter = Sifter(equipment) if job.in_bulk else None
        self._docket = Docket(equipment, self._family)
        self._totals.started()

    def run(self, onlooker: Onlooker = lambda progress: None) -> bool:
        """Go on until the budget is spent; False when the user stopped it."""
        store = self._has.store
        try:
            onlooker(self._progress())
            while self._share() < 1.0:
                self._totals.rest()
                if self._sifter is not None:
                    self._sifter.generation()
                else:
                    self._generation()
                    self._docket.work()
                onlooker(self._progress())
            self._docket.finish(lambda: onlooker(self._progress()))
            self._drifts()
            self._confirm()
        except KeyboardInterrupt:
            store.note(facts.INTERRUPTED, True)
            self._drifts(measure=False)  # the pool is closed by now
            return False
        finally:
            if self._sifter is not None:
                self._sifter.close()
        store.note(facts.INTERRUPTED, False)
        self._has.note_totals()
        return True

    def _generation(self) -> None:
        began = time.monotonic()
        bred = self._breed()
        self._totals.making += time.monotonic() - began
        answers = self._has.runner.run([one.trial for one in bred])
        tried = [self._try(one, runs) for one, runs in zip(bred, answers, strict=True)]
        state, canary = self._strategy.state(), self._canary(len(tried))
        self._has.keep(tried, state, self._strongest, canary, also=self._docket.note)
        self._family.sweep(spared=self._docket.digests)
        self._has.runner.recycle(self._job.memory_limit)

    def _breed(self) -> list[Bred]:
        """As many mutants as a generation holds, and the budget allows."""
        left = self._job.generation
        if self._job.budget.mutants is not None:
            left = min(left, self._job.budget.mutants - self._totals.tested)
        bred: list[Bred] = []
        tries = 0
        while len(bred) < left:
            choice = self._strategy.ask()
            trial = self._propose(choice)
            if trial is not None:
                tries = 0
                self._next += 1
                bred.append(Bred(choice, trial))
                continue
            self._strategy.tell(choice, Offspring(None))
            tries += 1
            if tries > _TRIES:
                raise UsageError(
                    f"none of the rules {', '.join(self._rules)} applies to the seeds; "
                    "name others with --rules"
                )
        return bred

    def _propose(self, choice: Choice) -> Trial | None:
        birth = Birth(self._next, choice.parent, choice.rule, self._job.seed)
        try:
            if choice.rule not in PROBES:
                return self._family.propose(birth)
            root = self._family.root_of(choice.parent)
            parent = self._family.subject(choice.parent)
            return self._prober.probe(birth, root, parent, self._has.seeds[root])
        except Lost:
            return None

    def _try(self, bred: Bred, runs: Mapping[str, Run]) -> Tried:
        """Judge a trial, put it on the docket if it is odd, tell the strategy, and count it."""
        trial = bred.trial
        answered = trial.answered(runs, self._has.lab)
        is_new = False
        if answered.odd is not None and isinstance(trial, Mutant):
            taken = self._docket.add(trial, answered.odd)
            answered, is_new = answered.showing(taken.again), taken.is_new
        joined = self._strategy.tell(bred.choice, self._offspring(trial, answered, is_new))
        if joined and trial.birth is not None:
            self._family.add(trial.birth, trial.subject)
        if answered.valid and trial.counts:
            self._strongest.add(trial.root, answered.mad, first=False)
        self._totals.count(trial, answered, self._accs[trial.root], self._has.tools)
        return Tried(trial, answered, row_of(trial, answered, joined, self._totals.seconds))

    def _offspring(self, trial: Trial, answered: Answered, is_new: bool) -> Offspring:
        """What a strategy is told at once: of findings, that something looks like no other."""
        found, odd = answered.conclusion, answered.odd
        known = bool(found.findings or found.again or (odd and (odd.odd or odd.failed)))
        return Offspring(
            trial.number if answered.valid else None,
            answered.acc if answered.valid else None,
            trial.repeatable and (self._job.breed_known or not known),
            len(found.fingerprints - self._has.keeper.known) + is_new,
            trial.cost,
        )

    def _canary(self, count: int) -> list[Sample]:
        """Time and memory of the first seed, now and then."""
        if self._next // _CANARY == (self._next - count) // _CANARY:
            return []
        seed = next(iter(self._has.seeds.values()))
        return self._has.lab.stopwatch.sample(seed, self._next - 1)

    def _confirm(self) -> None:
        """Every finding of this sitting again, in fresh workers."""
        began = time.monotonic()
        if self._job.confirm:
            for finding in self._has.lab.investigator.confirm(self._job.confirm):
                self._has.keeper.retell(finding)
        seconds = time.monotonic() - began
        self._totals.confirming += seconds
        if self._sifter is not None:
            self._sifter.confirming(seconds)

    def _drifts(self, *, measure: bool = True) -> None:
        seed, samples = next(iter(self._has.seeds.values())), self._has.store.samples()
        watch = self._has.lab.stopwatch
        for finding in watch.drifts(samples, seed) if measure else watch.growths(samples):
            with self._has.store.transaction():
                conclusion = Conclusion((finding,))
                self._has.keeper.keep(self._next - 1, seed.case.model, conclusion)

    def _share(self) -> float:
        """Of the budget, that is spent."""
        covered = self._covered() / max(1, len(self._has.tools.kinds))
        return self._job.budget.spent(self._totals.tested, self._totals.seconds, covered)

    def _covered(self) -> int:
        """Kinds of layers that could be drawn and were run."""
        return sum(kind in self._totals.kinds for kind in self._has.tools.kinds)

    def _progress(self) -> Progress:
        totals, keeper = self._totals, self._has.keeper
        tallies = self._strategy.state()["tallies"]
        return Progress(
            totals.tested,
            totals.valid,
            totals.rounding,
            totals.seconds,
            len(keeper.known),
            totals.best,
            {name: (used, succeeded) for name, (used, succeeded) in tallies.items()},
            self._share(),
            keeper.last,
            self._covered(),
            len(totals.values),
        )
