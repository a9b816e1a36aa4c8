"""Everything that a campaign works with: started targets, seeds that were read and run, notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outvote.bench.reader import arrivals, reader, require_started
from outvote.campaign.investigate import Investigator
from outvote.campaign.job import FuzzJob
from outvote.campaign.keeper import Keeper
from outvote.campaign.oracles import created
from outvote.campaign.performance.stopwatch import Stopwatch
from outvote.campaign.rules import rules_of
from outvote.campaign.runner import ModelRun, Runner
from outvote.campaign.seeds import Seed, read_seeds, with_truth
from outvote.campaign.totals import Sitting, Totals
from outvote.campaign.trial import Answered, Initial, Lab, Trial, row_of
from outvote.core.errors import UsageError
from outvote.core.result import target_head
from outvote.core.target import Run
from outvote.mutate.tools import Tools, tools_for
from outvote.run.pool import Pool
from outvote.search.strategy import Experience
from outvote.store import facts
from outvote.store.store import Row, Sample, Store
from outvote.store.strongest import Strongest

_NOBODY = "no target can run this seed"


@dataclass(frozen=True)
class Tried:
    """A trial, what its answers come to, and what the store keeps of it."""

    trial: Trial
    answered: Answered
    row: Row


@dataclass(frozen=True)
class Equipment:
    """What a campaign has at hand, in an open pool and store."""

    job: FuzzJob
    pool: Pool
    store: Store
    totals: Totals
    runner: Runner
    lab: Lab
    keeper: Keeper
    tools: Tools
    seeds: Mapping[int, Seed]  # each with a truth to measure D_MAD by
    first_runs: Mapping[int, Mapping[str, Run]]  # of the seeds, in this sitting

    def keep(
        self,
        tried: Sequence[Tried],
        state: Mapping[str, object],
        strongest: Strongest,
        samples: Sequence[Sample] = (),
        also: Callable[[], None] = lambda: None,
    ) -> None:
        """Store what was tried together, and where the campaign stands, in one transaction.

        `also` writes what else belongs to it.
        """
        with self.store.transaction():
            for one in tried:
                self.store.add(one.row)
                model = one.trial.subject.model
                self.keeper.keep(one.row.number, model, one.answered.conclusion)
            for sample in samples:
                self.store.sample(sample)
            self.store.note(facts.STATE, state)
            self.store.note(facts.STRONGEST, strongest.state())
            also()
            self.note_totals()

    def note_totals(self) -> None:
        runner, investigator = self.runner, self.lab.investigator
        sitting = Sitting(
            runner.flaky,
            runner.recycled,
            dict(self.pool.restarts),
            dict(runner.busy),
            investigator.seconds,
            investigator.looks,
            self.tools.refused,
        )
        self.totals.note(sitting, self.pool.peaks)


def equipped(job: FuzzJob, pool: Pool, store: Store, out: Path) -> Equipment:
    """Start the targets, read the seeds and run them: they are the first rows of a campaign."""
    totals = Totals(store)
    names = [target.name for target in job.targets]
    hellos = pool.start(names)
    for event in arrivals(hellos):
        store.tell(event)
    require_started(hellos)
    targets = {target.name: target for target in job.targets}
    heads = {name: target_head(target, hellos[name]) for name, target in targets.items()}
    store.note(facts.HELLOS, heads)
    runner = Runner(pool, names, keep=job.keep_outputs)
    investigator = Investigator(runner, job.targets, job.settings, job.minimise)
    stopwatch = Stopwatch(runner, pool.targets)
    lab = Lab(investigator, created(runner, pool.targets, job.oracle), stopwatch, job.settings)
    keeper = Keeper(pool, store, out, targets, hellos, lambda: totals.seconds)
    read = read_seeds(pool, job)
    tools = tools_for(job.dialect, pool, reader(job.targets).name)
    store.note(facts.DRAWABLE, sorted(tools.kinds))
    runs = runner.run([ModelRun(seed, seed.case.model) for seed in read])
    first_runs = {n + 1: found for n, found in enumerate(runs)}
    found = {n + 1: _settled(*both) for n, both in enumerate(zip(read, runs, strict=True))}
    seeds = {number: seed for number, seed in found.items() if seed is not None}
    gone = {read[number - 1].name: _NOBODY for number, seed in found.items() if seed is None}
    if not seeds:
        raise UsageError(f"no target can run any of the seeds, such as {next(iter(gone))}")
    store.note(facts.NOT_COVERED, {**tools.not_covered, **gone})
    made = Equipment(job, pool, store, totals, runner, lab, keeper, tools, seeds, first_runs)
    if store.fact(facts.STATE) is None:
        _begin(made)
    return made


def _settled(seed: Seed, runs: Mapping[str, Run]) -> Seed | None:
    """The seed with a truth: made of the targets' answers where the data has none.

    None: an example with a known answer, one of many, that all targets say they lack.
    """
    outputs = [run.reply.outputs for run in runs.values() if run.ok]
    if not outputs and seed.answers is not None:
        return None
    if not outputs:
        told = "; ".join(f"{n}: {' '.join(r.message.split())[:200]}" for n, r in runs.items())
        raise UsageError(f"no target can run the seed {seed.name!r}: {told}")
    return with_truth(seed, outputs)


def _begin(equipment: Equipment) -> None:
    """The seeds themselves: what they show is not the mutants' merit."""
    strongest, accs, tried = Strongest(), {}, []
    for number, seed in equipment.seeds.items():
        initial = Initial(number, seed)
        answered = initial.answered(equipment.first_runs[number], equipment.lab)
        accs[number] = answered.acc or 0.0
        strongest.add(number, answered.mad, first=True)
        row = row_of(initial, answered, True, equipment.totals.seconds)
        tried.append(Tried(initial, answered, row))
    job = equipment.job
    equipment.keep(tried, Experience.new(accs, rules_of(job), job.seed).state(), strongest)
