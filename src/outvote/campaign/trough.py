"""A crew's side of a campaign in bulk: the dialect's sieve, and looks into what it lets through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from outvote.bench.reader import reader
from outvote.campaign.equipment import Equipment
from outvote.campaign.runner import ModelRun, affordable_rows
from outvote.campaign.seeds import Seed
from outvote.campaign.trial import Mutant
from outvote.core.case import Case, Data
from outvote.core.dialect import dialect
from outvote.core.parts import OpenSieve
from outvote.core.sifted import Sifted, SuspectCase
from outvote.core.target import Run
from outvote.judge.truth import interpret
from outvote.mutate.subject import Subject
from outvote.store.rows import Birth


@dataclass
class Trough:
    """Sifts from any number on; who goes on where it stopped finds the next cases under way."""

    has: Equipment
    _coming: tuple[int, int] = (-1, -1)  # what the open sieve gives next: from, to
    _sifted: Iterator[Sifted] = field(default_factory=lambda: iter(()))

    @cached_property
    def _sieve(self) -> OpenSieve:
        job = self.has.job
        bulk = dialect(job.dialect).bulk
        return bulk.open_sieve(self.has.pool, job.targets, reader(job.targets).name, job.seed)

    def close(self) -> None:
        if "_sieve" in vars(self):  # it was opened
            self._sieve.close()

    def sifted(self, first: int, end: int) -> Sifted:
        """About a second of new cases, of the stretch that ends there."""
        has = self.has
        has.tools.blobs.keep_only(set())
        has.runner.recycle(has.job.memory_limit)
        if (first, end) != self._coming:
            self._sifted = self._sieve.sifted(first, end)
        found = next(self._sifted)
        self._coming = (found.first + found.tested, end)
        for name, seconds in found.inside.items():
            has.runner.busy[name] = has.runner.busy.get(name, 0.0) + seconds
        return found

    def run(self, one: SuspectCase, birth: Birth) -> tuple[Mutant, dict[str, Run]] | None:
        """A case as a mutant, on every target; None where the reader will not have it."""
        seed = self._read(one, birth.number)
        if seed is None:
            return None
        model = seed.case.model
        names = tuple(layer.name for layer in model.layers)
        rows = affordable_rows(seed.subject, names, seed.case.data.count)
        (runs,) = self.has.runner.run([ModelRun(seed, model, names, rows)])
        return Mutant(birth, birth.parent, seed.subject, names, seed), runs

    def _read(self, one: SuspectCase, number: int) -> Seed | None:
        found = self._sieve.read(one)
        if found is None:
            return None
        model, shapes = found.model, found.output_shapes
        data = Data(one.inputs, None, "drawn", tuple(item.batch for item in model.inputs))
        case = Case(model, shapes, data, interpret(None, shapes[0]))
        digests = tuple(self.has.pool.blobs.put(array) for array in one.inputs)
        return Seed(f"case {number}", case, Subject.of(model, found.specs), digests)
