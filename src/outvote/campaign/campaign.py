"""The loop: ask the strategy, run the mutants, judge, look into what is odd, tell the strategy.

A generation is a handful of mutants: all are asked for, run and judged, then the strategy is
told of them in order. It is stored in one transaction, together with the strategy's state.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outvote.bench.reading import reader, require_started
from outvote.campaign.family import Family, Lost, Mutant
from outvote.campaign.investigate import Investigator, Report
from outvote.campaign.job import FuzzJob
from outvote.campaign.keeper import Keeper
from outvote.campaign.oracle import Judged, judge
from outvote.campaign.performance.stopwatch import Stopwatch
from outvote.campaign.probes.illegal import Refusals, findings_of, refusals
from outvote.campaign.probes.prober import PROBES, Prober
from outvote.campaign.rules import chosen_rules, rules_of
from outvote.campaign.runner import Runner, Trial, affordable_rows, inside
from outvote.campaign.seeds import Seed, read_seeds, with_truth
from outvote.core.errors import UsageError
from outvote.core.result import target_head
from outvote.core.target import Run
from outvote.mutate.tools import Tools, tools_for, value_class
from outvote.run.pool import Pool
from outvote.search.registry import strategy
from outvote.search.strategy import Choice, Memory, Offspring, Strategy
from outvote.store.rows import Birth
from outvote.store.store import Row, Store
from outvote.store.strongest import Strongest

_TRIES = 2000  # rules that do not apply, one after the other, before we give up
_CANARY = 50  # mutants between two runs of the seed that measure time and memory


@dataclass
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


Watch = Callable[[Progress], None]


class Campaign:
    """One campaign in an open pool and store."""

    def __init__(self, job: FuzzJob, pool: Pool, store: Store, out: Path) -> None:
        self._job = job
        self._pool = pool
        self._store = store
        self._out = out
        self._names = [target.name for target in job.targets]
        self.runner = Runner(pool, self._names, keep=job.keep_outputs)
        self._investigator = Investigator(self.runner, job.targets, job.settings, job.minimise)
        self._stopwatch = Stopwatch(self.runner, pool.targets)
        self._kinds: Counter[str] = Counter()
        self._values: Counter[str] = Counter()  # kind, parameter and class of its value
        self._accepted: Counter[str] = Counter()  # illegal values that no target refused
        self._progress = Progress()
        self._looking = 0.0
        self._making = 0.0
        self._began = 0.0
        self._before = 0.0  # seconds of earlier sittings
        self._starting = 0.0  # seconds until the first generation, all sittings together

    def run(self, watch: Watch = lambda progress: None) -> bool:
        """Go on until the budget is spent; False when the user stopped it."""
        self._began = time.monotonic()
        self._before = float(self._store.fact("seconds", 0.0))
        hellos = self._pool.start(self._names)
        require_started(hellos)
        targets = {target.name: target for target in self._job.targets}
        self._keeper = Keeper(
            self._pool, self._store, self._out, targets, hellos, lambda: self._now
        )
        heads = {name: target_head(target, hellos[name]) for name, target in targets.items()}
        self._store.note("hellos", heads)
        self._seeds = {n + 1: seed for n, seed in enumerate(read_seeds(self._pool, self._job))}
        self._tools = self._made_tools()
        self._rules = chosen_rules(self._job.rules, self._job.dialect)
        self._earlier = {
            key: self._store.fact(key, {} if isinstance(own, dict) else 0)
            for key, own in {**self._counters(), "peaks": {}}.items()
        }
        self._prober = Prober(self._job, self._pool, self._names, self._tools)
        roots = {number: seed.subject for number, seed in self._seeds.items()}
        self._family = Family(roots, self._rules, self._tools, self._job.seed)
        try:
            if self._store.fact("state") is None:
                self._start()
            self._restore()
            self._starting = (
                time.monotonic() - self._began + float(self._store.fact("starting", 0.0))
            )
            watch(self._progress)
            while not self._spent():
                self._generation()
                watch(self._progress)
            self._drifts()
            self._confirm()
        except KeyboardInterrupt:
            if self._store.fact("state") is None:
                raise
            self._store.note("interrupted", True)
            self._drifts(measure=False)  # the pool is closed by now
            return False
        self._store.note("interrupted", False)
        self._note_totals()
        return True

    @property
    def _now(self) -> float:
        return self._before + time.monotonic() - self._began

    def _made_tools(self) -> Tools:
        name = reader(self._job.targets).name
        tools = tools_for(self._job.dialect, self._pool, name)
        self._store.note("not_covered", dict(tools.not_covered))
        self._store.note("drawable", sorted(tools.kinds))
        return tools

    def _start(self) -> None:
        """Run the seeds themselves: what they show is not the mutants' merit."""
        strongest, accs = Strongest(), {}
        trials = [Trial(seed, seed.case.model) for seed in self._seeds.values()]
        rows, reports = [], []
        for (number, seed), runs in zip(self._seeds.items(), self.runner.run(trials), strict=True):
            self._require_one(seed, runs)
            seed = self._settled(number, runs)
            judged = judge(runs, (), seed.case.truth, self._job.settings)
            accs[number] = judged.acc or 0.0
            strongest.add(number, judged.mad(), first=True)
            rows.append(self._row(number, None, number, None, judged, joined=True, layers=seed))
            mutant = Mutant(_no_birth(number), number, seed.subject, ())
            reports.append(self._look(mutant, judged))
        memory = Memory.new(accs, rules_of(self._job), self._job.seed)
        with self._store.transaction():
            for row, report in zip(rows, reports, strict=True):
                self._store.add(row)
                self._keeper.keep(row.number, self._seeds[row.number].case.model, report)
            self._store.note("state", memory.state())
            self._store.note("strongest", strongest.state())

    def _settled(self, number: int, runs: Mapping[str, Run]) -> Seed:
        """The seed with a truth: made of the targets' answers where the data has none."""
        outputs = [run.reply.outputs for run in runs.values() if run.ok]
        self._seeds[number] = with_truth(self._seeds[number], outputs)
        return self._seeds[number]

    def _restore(self) -> None:
        """Take up where the store stands."""
        state = self._store.fact("state")
        self._strategy: Strategy = strategy(self._job.strategy, Memory.restored(state))
        self._strongest = Strongest.restored(self._store.fact("strongest"))
        self._family.births = self._store.births()
        self._accs = {row.number: row.acc for row in self._store.rows()}
        self._next = max(self._accs) + 1
        self._kinds = Counter(self._store.fact("kinds", {}))
        self._values = Counter(self._store.fact("values", {}))
        self._accepted = Counter(self._store.fact("accepted", {}))
        self._keeper.restore()
        tested = [row for row in self._store.rows() if row.rule is not None]
        self._progress.tested = len(tested)
        self._progress.valid = sum(row.outcome != "invalid" for row in tested)
        self._progress.rounding = int(self._store.fact("rounding", 0))
        for number, seed in self._seeds.items():
            if seed.case.truth.kind == "none":
                self._settled(number, self.runner.run([Trial(seed, seed.case.model)])[0])
        self._update()

    def _generation(self) -> None:
        began = time.monotonic()
        bred = self._breed()
        self._making += time.monotonic() - began
        found = self.runner.run([self._trial(mutant) for _, mutant in bred])
        rows: list[Row] = []
        reports: list[Report] = []
        for (choice, mutant), runs in zip(bred, found, strict=True):
            seed = self._seed_of(mutant)
            judged = (
                refusals(runs)
                if mutant.attempt
                else judge(runs, mutant.changed, seed.case.truth, self._job.settings)
            )
            report = self._look(mutant, judged)
            reports.append(report)
            rows.append(self._tell(choice, mutant, judged, report))
            if mutant.attempt is None:
                self._stopwatch.check(seed, mutant.subject.model, judged, report)
        crossed = self._next // _CANARY != (self._next - len(bred)) // _CANARY
        seed = next(iter(self._seeds.values()))
        samples = self._stopwatch.sample(seed, self._next - 1) if crossed else []
        with self._store.transaction():
            for (_, mutant), row, report in zip(bred, rows, reports, strict=True):
                self._store.add(row)
                self._keeper.keep(row.number, mutant.subject.model, report)
            for sample in samples:
                self._store.sample(sample)
            self._store.note("state", self._strategy.state())
            self._store.note("strongest", self._strongest.state())
            self._note_totals()
        self._family.sweep()
        self.runner.recycle(self._job.memory_limit)
        self._update()

    def _breed(self) -> list[tuple[Choice, Mutant]]:
        """As many mutants as a generation holds, and the budget allows."""
        left = self._job.generation
        if self._job.budget.mutants is not None:
            left = min(left, self._job.budget.mutants - self._progress.tested)
        bred: list[tuple[Choice, Mutant]] = []
        tries = 0
        while len(bred) < left:
            choice = self._strategy.ask()
            mutant = self._propose(choice)
            if mutant is None:
                self._strategy.tell(choice, Offspring(None))
                tries += 1
                if tries > _TRIES:
                    raise UsageError(
                        f"none of the rules {', '.join(self._rules)} applies to the seeds; "
                        "name others with --rules"
                    )
                continue
            tries = 0
            self._next += 1
            bred.append((choice, mutant))
        return bred

    def _seed_of(self, mutant: Mutant) -> Seed:
        return mutant.seed or self._seeds[mutant.root]

    def _trial(self, mutant: Mutant) -> Trial:
        seed = self._seed_of(mutant)
        instead = mutant.attempt.request if mutant.attempt else None
        rows = affordable_rows(mutant.subject, mutant.changed, seed.case.data.count)
        return Trial(seed, mutant.subject.model, mutant.changed, rows, instead)

    def _propose(self, choice: Choice) -> Mutant | None:
        try:
            if choice.rule in PROBES:
                birth = Birth(self._next, choice.parent, choice.rule, self._job.seed)
                root = self._family.root_of(choice.parent)
                parent = self._family.subject(choice.parent)
                return self._prober.probe(birth, root, parent, self._seeds[root])
            return self._family.propose(self._next, choice.parent, choice.rule)
        except Lost:
            return None

    def _tell(self, choice: Choice, mutant: Mutant, judged: Judged, report: Report) -> Row:
        number, acc = mutant.birth.number, judged.acc
        breeds = self._job.breed_known or not (report.known or report.findings)
        breeds &= mutant.birth.rule not in PROBES  # they cannot be made again from their seed
        child = number if judged.valid else None
        new = len({f.fingerprint for f in report.findings} - self._keeper.known)
        offspring = Offspring(child, acc if judged.valid else None, breeds, new, mutant.cost)
        joined = self._strategy.tell(choice, offspring)
        if joined:
            self._family.add(mutant)
        self._accs[number] = acc
        if judged.valid:
            if mutant.seed is None:  # counted per input of the seed
                self._strongest.add(mutant.root, judged.mad(), first=False)
            self._count(mutant)
            before = self._accs.get(mutant.root) or 0.0
            if acc is not None and before > 0:
                self._progress.best = max(self._progress.best, acc / before)
        self._progress.tested += 1
        self._progress.valid += judged.valid
        self._progress.rounding += report.rounding
        return self._row(
            number, mutant.birth.parent, mutant.root, mutant.birth.rule, judged, joined, mutant
        )

    def _count(self, mutant: Mutant) -> None:
        """What was exercised: kinds of new layers, and classes of their parameters' values."""
        if mutant.attempt is not None:
            return
        for layer in map(mutant.subject.model.layer, mutant.changed):
            self._kinds[layer.kind] += 1
            for name, value in self._tools.parameters(layer).items():
                self._values[f"{layer.kind} {name} {value_class(value)}"] += 1

    def _look(self, mutant: Mutant, judged: Judged) -> Report:
        if mutant.attempt is not None and isinstance(judged, Refusals):
            found = findings_of(mutant.attempt, judged, self._pool.targets)
            if len(judged.accepted) == len(judged.runs):
                self._accepted[mutant.attempt.told] += 1
            return Report(found)
        if not judged.suspicious:
            return Report()
        began = time.monotonic()
        seed = self._seed_of(mutant)
        report = self._investigator.look(seed, mutant.subject.model, judged)
        self._looking += time.monotonic() - began
        return report

    def _confirm(self) -> None:
        """Every finding of this sitting again, in fresh workers."""
        if self._job.confirm:
            for finding in self._investigator.confirm(self._job.confirm):
                self._keeper.retell(finding)

    def _drifts(self, *, measure: bool = True) -> None:
        seed, samples = next(iter(self._seeds.values())), self._store.samples()
        watch = self._stopwatch
        for finding in watch.drifts(samples, seed) if measure else watch.growths(samples):
            with self._store.transaction():
                self._keeper.keep(self._next - 1, seed.case.model, Report([finding]))

    def _row(
        self,
        number: int,
        parent: int | None,
        root: int,
        rule: str | None,
        judged: Judged,
        joined: bool,
        layers: Mutant | Seed,
    ) -> Row:
        failed = next(iter(judged.failed.values()), None)
        return Row(
            number,
            parent,
            root,
            rule,
            self._job.seed if rule else None,
            "invalid" if not judged.valid else "some" if judged.failed else "ok",
            judged.acc,
            joined,
            len(layers.subject.model.layers),
            sum(inside(run) for run in judged.runs.values()),
            self._now,
            f"{failed.target}: {failed.message[:500]}" if failed else "",
            _told(layers) if isinstance(layers, Mutant) else layers.name,
        )

    def _require_one(self, seed: Seed, runs: Mapping[str, Run]) -> None:
        if not any(run.ok for run in runs.values()):
            told = "; ".join(f"{n}: {' '.join(r.message.split())[:200]}" for n, r in runs.items())
            raise UsageError(f"no target can run the seed {seed.name!r}: {told}")

    def _note_totals(self) -> None:
        note = self._store.note
        note("seconds", self._now)
        note("starting", self._starting)
        note("kinds", dict(self._kinds))
        note("values", dict(self._values))
        note("accepted", dict(self._accepted))
        note("rounding", self._progress.rounding)
        peaks = self._earlier["peaks"]
        note("peaks", {n: max(own, peaks.get(n, 0)) for n, own in self._pool.peaks.items()})
        for key, own in self._counters().items():
            note(key, _added(self._earlier[key], own))

    def _counters(self) -> dict[str, Any]:
        """What this sitting adds to the totals of the campaign."""
        return {
            "flaky": self.runner.flaky,
            "recycled": self.runner.recycled,
            "restarts": dict(self._pool.restarts),
            "busy": dict(self.runner.busy),
            "looking": self._looking,
            "making": self._making,
            "looks": self._investigator.looks,
            "refused_draws": self._tools.refused,
        }

    def _update(self) -> None:
        progress = self._progress
        progress.seconds = self._now
        progress.findings, progress.last = len(self._keeper.known), self._keeper.last
        progress.rules = {
            name: (used, succeeded)
            for name, (used, succeeded) in self._strategy.state()["tallies"].items()
        }
        progress.share = self._share()

    def _share(self) -> float:
        budget, shares = self._job.budget, [0.0]
        if budget.mutants is not None:
            shares.append(self._progress.tested / max(1, budget.mutants))
        if budget.seconds is not None:
            shares.append(self._now / budget.seconds)
        if budget.coverage is not None:
            drawable = self._tools.kinds
            covered = sum(kind in self._kinds for kind in drawable) / len(drawable)
            shares.append(covered / budget.coverage)
        return max(shares)

    def _spent(self) -> bool:
        return self._share() >= 1.0


def _added(one: Any, other: Any) -> Any:
    """The sum of two numbers, or of two dicts of numbers by their keys."""
    if isinstance(other, dict):
        return {key: one.get(key, 0) + value for key, value in other.items()}
    return one + other


def _told(mutant: Mutant) -> str:
    """What is new in a mutant, for the chain of mutations that a report shows."""
    if mutant.attempt is not None:
        return mutant.attempt.told
    return " ".join(mutant.subject.model.layer(n).kind for n in mutant.changed)


def _no_birth(number: int) -> Birth:
    return Birth(number, 0, "", 0)
