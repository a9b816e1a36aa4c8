"""A campaign on cases that the dialect draws and compares in bulk; suspects alone are judged.

Running new cases and looking into what they show share the time: looking gets what is over when
new cases have had theirs. Differences wait by what they look like, those like no other first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from outvote.bench.reader import reader
from outvote.campaign.crew import Crew
from outvote.campaign.keeper import Keeper
from outvote.campaign.novelty import Novelty, Waiting
from outvote.campaign.rules import FREE
from outvote.campaign.runner import ModelRun, affordable_rows
from outvote.campaign.seeds import Seed
from outvote.campaign.totals import Totals
from outvote.campaign.trial import Mutant
from outvote.core.case import Case, Data
from outvote.core.dialect import dialect
from outvote.core.sifted import Sifted, SuspectCase
from outvote.judge.truth import interpret
from outvote.mutate.subject import Subject
from outvote.store import facts
from outvote.store.rows import Birth
from outvote.store.store import Store

SHARE = 0.3  # of the time, that looking into differences may take
_ROOT = 1
_SLICE = 10.0  # seconds between two points of the throughput over time


@dataclass
class SiftCounts:
    """What a campaign in bulk counts, as the store keeps it."""

    tested: int = 0
    valid: int = 0
    parted: int = 0  # on which targets part
    causes: int = 0  # keys that they have
    waiting: int = 0  # of those, not looked into
    sifting: float = 0.0  # seconds that new cases took
    looking: float = 0.0
    confirming: float = 0.0


class Sifter:
    """Runs new cases and looks into some."""

    def __init__(self, crew: Crew, store: Store, totals: Totals, keeper: Keeper) -> None:
        self._crew, self._store, self._totals, self._keeper = crew, store, totals, keeper
        self._has = equipment = crew.has
        job = equipment.job
        self.counts = SiftCounts(**store.fact(facts.SIFTED) or {})
        self._series: list[list[float]] = store.fact(facts.SIFTED_OVER_TIME)
        self._novelty: Novelty[SuspectCase] = Novelty()
        self._next = max(row.number for row in store.rows()) + 1
        self._sieve = dialect(job.dialect).bulk.open_sieve(
            equipment.pool, job.targets, reader(job.targets).name, job.seed
        )
        self._sifted: Iterator[Sifted] = self._sieve.sifted(self.counts.tested)

    def close(self) -> None:
        self._sieve.close()

    def generation(self) -> None:
        """About a second of new cases, then a look or more, as far as the time allows."""
        began = time.monotonic()
        sifted = next(self._sifted)
        self._count(sifted)
        self.counts.sifting += time.monotonic() - began
        while self.counts.looking <= SHARE * (self.counts.looking + self.counts.sifting):
            one = self._novelty.next()
            if one is None:
                break
            began = time.monotonic()
            self._look(one)
            self.counts.looking += time.monotonic() - began
        self._has.tools.blobs.keep_only(set())
        self._note()
        self._has.runner.recycle(self._has.job.memory_limit)

    def confirming(self, seconds: float) -> None:
        self.counts.confirming += seconds
        self._note()

    def _count(self, sifted: Sifted) -> None:
        counts, has = self.counts, self._has
        counts.tested += sifted.tested
        counts.valid += sifted.valid
        counts.parted += len(sifted.suspects)
        self._totals.tested, self._totals.valid = counts.tested, counts.valid
        for name, seconds in sifted.inside.items():
            has.runner.busy[name] = has.runner.busy.get(name, 0.0) + seconds
        with self._store.transaction():
            for suspect in sifted.suspects:
                for fingerprint in self._novelty.add(suspect.number, suspect.key, suspect.cases):
                    self._keeper.met(fingerprint)
        at = self._totals.seconds
        if not self._series or at - self._series[-1][0] >= _SLICE:
            self._series.append([round(at, 1), counts.tested])

    def _look(self, one: Waiting[SuspectCase]) -> None:
        """The case on every target, by the same judge as every mutant."""
        seed = self._read(one)
        if seed is None:
            self._novelty.looked(one, (), False)
            return
        model = seed.case.model
        names = tuple(layer.name for layer in model.layers)
        rows = affordable_rows(seed.subject, names, seed.case.data.count)
        (runs,) = self._has.runner.run([ModelRun(seed, model, names, rows)])
        birth = Birth(self._next, _ROOT, FREE, one.number)
        trial = Mutant(birth, _ROOT, seed.subject, names, seed)
        report = self._crew.looked_into(trial, runs)
        known = set(self._keeper.known)
        with self._store.transaction():
            self._store.add(replace(report.row, at=self._totals.seconds))
            self._keeper.keep(report.row.number, report.findings, report.again)
        self._next += 1
        self._totals.rounding += report.rounding
        if report.valid:
            self._totals.seen(report)
        fingerprints = report.fingerprints | report.again
        self._novelty.looked(one, fingerprints, bool(report.fingerprints - known))

    def _read(self, one: Waiting[SuspectCase]) -> Seed | None:
        """The case as a model of ours; None where the reader will not have it."""
        pool, found = self._has.pool, self._sieve.read(one.case)
        if found is None:
            return None
        model, shapes = found.model, found.output_shapes
        data = Data(one.case.inputs, None, "drawn", tuple(item.batch for item in model.inputs))
        case = Case(model, shapes, data, interpret(None, shapes[0]))
        digests = tuple(pool.blobs.put(array) for array in one.case.inputs)
        return Seed(f"case {self._next}", case, Subject.of(model, found.specs), digests)

    def _note(self) -> None:
        self.counts.causes = len(self._novelty.met)
        self.counts.waiting = self._novelty.waiting
        with self._store.transaction():
            self._store.note(facts.SIFTED, vars(self.counts))
            self._store.note(facts.SIFTED_OVER_TIME, self._series)
            self._totals.note(self._crew.standing)
