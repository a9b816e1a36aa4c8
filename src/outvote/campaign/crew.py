"""A crew: makes mutants of births, runs them on its targets, judges, and looks into what is odd.

It knows no store and no strategy. `crews.py` says how a campaign asks one; `orders.py` what.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from outvote.campaign.equipment import Equipment
from outvote.campaign.family import Family, Lost
from outvote.campaign.odd import key_beside, key_of
from outvote.campaign.probes.prober import PROBES, Prober
from outvote.campaign.report import Opening, Report, Sitting, Standing, ToldFinding
from outvote.campaign.rules import chosen_rules
from outvote.campaign.seeds import Seed
from outvote.campaign.trial import Answered, Initial, Mutant, Trial, row_of
from outvote.campaign.trough import Trough
from outvote.campaign.turns import who_runs
from outvote.core.model import Model
from outvote.core.protocol import LinesReached, Ran
from outvote.core.sifted import Sifted, SuspectCase
from outvote.core.target import Run
from outvote.findings.evidence import write_finding
from outvote.findings.finding import Finding
from outvote.findings.result import finding_result
from outvote.mutate.tools import value_class
from outvote.store.rows import Birth
from outvote.store.store import Sample

_AT_ONCE = 4  # generations that targets may have before them; one crew sets out on few
_MOST_ODD = 256  # mutants that wait for a look, in memory; others are made again


@dataclass(frozen=True)
class Outing:
    """Mutants that targets are running."""

    crew: Crew
    births: Sequence[Birth]
    trials: Sequence[Trial]
    runs: Future[list[dict[str, Run]]]

    def reports(self) -> list[Report | None]:
        """Of each birth, when all are there; None where one cannot be made again."""
        told = self.crew.judge(self.trials, self.runs.result())
        return [told.get(birth.number) for birth in self.births]


@dataclass
class Crew:
    """Works on what it is given, with its own targets; writes the folders of findings to `out`."""

    has: Equipment
    out: Path
    known: set[str] = field(default_factory=set)  # fingerprints of findings that have a folder

    def __post_init__(self) -> None:
        job, has = self.has.job, self.has
        rules = chosen_rules(job.rules, job.dialect)
        self._family = Family(has.seeds, rules, has.tools)
        self._prober = Prober(job, has.pool, has.runner.names, has.tools)
        self._trough = Trough(has)
        self._made: dict[int, Trial] = {}  # of the generations that are under way
        self._tried: dict[int, Trial] = {}  # and of the one that was judged
        self._odd: dict[int, Trial] = {}  # what waits for a look
        self._under_way: list[Future[list[dict[str, Run]]]] = []
        self._making = self._looking = 0.0  # seconds
        self._measures = False
        self._threads = ThreadPoolExecutor(_AT_ONCE)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._trough.close()

    def opening(self, begun: bool) -> Opening:
        """What this crew is; the seeds themselves, unless the campaign has `begun` with them.

        Who opens a campaign also measures time and memory while it goes on: other machines have
        another pace.
        """
        has, self._measures = self.has, True
        initial = [Initial(*both) for both in has.seeds.items()] if not begun else []
        return Opening(
            has.heads,
            tuple(sorted(has.tools.kinds)),
            {**has.tools.not_covered, **has.gone},
            tuple(self._judged(one, has.first_runs[one.number]) for one in initial),
        )

    def make(self, births: Sequence[Birth], ancestors: Iterable[Birth]) -> list[bool]:
        """Whether each can be born: False where its rule does not apply."""
        began = time.monotonic()
        if any(birth.rule in PROBES for birth in births):
            self.rest()
        self._family.learn(ancestors)
        made = [self._proposed(birth) for birth in births]
        self._made.update({trial.number: trial for trial in made if trial is not None})
        self._making += time.monotonic() - began
        return [trial is not None for trial in made]

    def attempt(self, births: Sequence[Birth], ancestors: Iterable[Birth]) -> list[Report | None]:
        """Run mutants on every target whose turn it is, and judge them.

        None where one cannot be made again.
        """
        return self.set_out(births, ancestors).reports()

    def set_out(self, births: Sequence[Birth], ancestors: Iterable[Birth]) -> Outing:
        """Begin to run mutants; who asks for the reports waits for them, and may do more before."""
        missing = [birth for birth in births if birth.number not in self._made]
        if missing:  # another crew made them
            self.make(missing, ancestors)
        trials = [self._made[birth.number] for birth in births if birth.number in self._made]
        whom = [self._whom(trial) for trial in trials]
        runs = self._threads.submit(
            self.has.runner.run, trials, whom, lines=self.has.job.line_coverage
        )
        self._under_way = [*(one for one in self._under_way if not one.done()), runs]
        return Outing(self, births, trials, runs)

    def judge(
        self, trials: Sequence[Trial], answers: Sequence[Mapping[str, Run]]
    ) -> dict[int, Report]:
        """What the targets' answers come to, by number; the next order settles these."""
        for trial in trials:
            self._tried[trial.number] = self._made.pop(trial.number)
        told = zip(trials, answers, strict=True)
        return {trial.number: self._judged(trial, runs) for trial, runs in told}

    def look(self, births: Sequence[Birth], ancestors: Iterable[Birth]) -> list[Report | None]:
        """Why targets part on mutants that waited; None where one cannot be made again."""
        self.rest()
        return [self._timed_look(birth, ancestors) for birth in births]

    def _timed_look(self, birth: Birth, ancestors: Iterable[Birth]) -> Report | None:
        """What was waited for before, new cases, is no part of its time."""
        began = time.monotonic()
        with self._looks():
            report = self._look(birth, ancestors)
        return report and replace(report, looking=time.monotonic() - began)

    def _look(self, birth: Birth, ancestors: Iterable[Birth]) -> Report | None:
        trial = self._odd.pop(birth.number, None)
        if trial is None:  # another crew met it, or an earlier sitting
            self._family.learn(ancestors)
            trial = self._proposed(birth)
        if not isinstance(trial, Mutant):
            return None
        (runs,) = self.has.runner.run([trial])
        return self._looked_into(trial, runs)

    def sift(self, first: int, end: int) -> Sifted:
        """Some new cases in bulk, from a number on, of the stretch that ends there."""
        return self._trough.sifted(first, end)

    def look_at(self, one: SuspectCase, birth: Birth) -> list[Report | None]:
        """Why targets part on a case out of the sieve; None where it cannot be read."""
        with self._looks():
            found = self._trough.run(one, birth)
            return [None if found is None else self._looked_into(*found)]

    def rest(self) -> None:
        """Wait until no target runs a generation: nothing may come between steps of a session."""
        wait(self._under_way)

    @contextmanager
    def _looks(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._looking += time.monotonic() - began

    def settle(
        self, joined: Collection[int], waiting: Sequence[int], sampled: int | None
    ) -> list[Sample]:
        """Keep the models that may breed, and those that wait for a look; let go of the others.

        `waiting`: the next one first. Workers that have grown are replaced. `sampled`: the number
        under which time and memory of the first seed are measured now.
        """
        samples: list[Sample] = []
        if self._measures and sampled is not None:
            self.rest()
            samples = self.has.lab.stopwatch.sample(self._first, sampled)
        for trial in self._tried.values():
            if trial.number in joined:
                self._family.keep(trial.number, trial.subject)
        held = {**self._odd, **self._tried}
        odd = [held[number] for number in waiting if number in held]
        again = {trial.number for trial in [t for t in odd if t.repeatable][_MOST_ODD:]}
        self._odd = {trial.number: trial for trial in odd if trial.number not in again}
        self._tried.clear()
        self._family.sweep(spared=_digests([*self._odd.values(), *self._made.values()]))
        self.has.runner.recycle(self.has.job.memory_limit)
        return samples

    def drifts(self, samples: Sequence[Sample]) -> list[ToldFinding]:
        """Targets that need ever more time or memory, and still do when measured again."""
        found = self.has.lab.stopwatch.drifts(samples, self._first)
        return [self._told(finding, self._first.case.model) for finding in found]

    def growths(self, samples: Sequence[Sample]) -> list[ToldFinding]:
        """Of those, what nothing has to be measured for."""
        found = self.has.lab.stopwatch.growths(samples)
        return [self._told(finding, self._first.case.model) for finding in found]

    def confirm(
        self, times: int, seconds: float | None, fingerprints: Collection[str] | None = None
    ) -> list[ToldFinding]:
        """Findings of this crew, all or those named, again in fresh workers, as time allows."""
        found = self.has.lab.investigator.confirm(times, seconds, fingerprints)
        return [self._proved(f, f.proof.specimen.model) for f in found if f.proof is not None]

    @property
    def at_hand(self) -> Collection[str]:
        """Findings that it can confirm."""
        return self.has.lab.investigator.examined.keys()

    @property
    def standing(self) -> Standing:
        runner, investigator, pool = self.has.runner, self.has.lab.investigator, self.has.pool
        sitting = Sitting(
            runner.flaky,
            runner.recycled,
            dict(pool.restarts),
            dict(runner.busy),
            self._making,
            self._looking,
            investigator.looks,
            self.has.tools.refused,
        )
        return Standing(sitting, dict(pool.peaks))

    def _whom(self, trial: Trial) -> Collection[str]:
        """Only layers on tensors of their own are not run by all: nobody compares distances."""
        if isinstance(trial, Mutant) and trial.repeatable and not trial.counts:
            return who_runs(trial.number, list(self.has.targets.values()))
        return self.has.runner.names

    @property
    def _first(self) -> Seed:
        return next(iter(self.has.seeds.values()))

    def _proposed(self, birth: Birth) -> Trial | None:
        try:
            if birth.rule not in PROBES:
                return self._family.propose(birth)
            root = self._family.root_of(birth.parent)
            parent = self._family.subject(birth.parent)
            return self._prober.probe(birth, root, parent, self.has.seeds[root])
        except Lost:
            return None

    def _looked_into(self, trial: Mutant, runs: Mapping[str, Run]) -> Report:
        """Why targets part on a mutant, as far as they do."""
        return self._report(trial, trial.looked_into(runs, self.has.lab))

    def _report(self, trial: Trial, answered: Answered) -> Report:
        concluded, model, odd = answered.conclusion, trial.subject.model, answered.odd
        kinds, values = self._covered(trial)
        return Report(
            row_of(trial, answered),
            answered.mad if trial.counts and answered.valid else {},
            tuple(self._told(finding, model) for finding in concluded.findings),
            concluded.again,
            concluded.rounding,
            concluded.accepted,
            kinds,
            values,
            key_of(model, odd) if odd is not None else None,
            key_beside(model, odd) if odd is not None else None,
            odd is not None and bool(odd.odd or odd.failed),
            trial.repeatable,
            trial.counts,
            trial.cost,
            _lines_of(answered.runs),
            concluded.left_out,
        )

    def _judged(self, trial: Trial, runs: Mapping[str, Run]) -> Report:
        return self._report(trial, trial.answered(runs, self.has.lab))

    def _covered(self, trial: Trial) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Kinds of the layers that are new, and what classes their parameters' values are of."""
        layers = [trial.subject.model.layer(name) for name in trial.changed]
        values = [
            f"{layer.kind} {name} {value_class(value)}"
            for layer in layers
            for name, value in self.has.tools.parameters(layer).items()
        ]
        return tuple(layer.kind for layer in layers), tuple(values)

    def _told(self, finding: Finding, model: Model) -> ToldFinding:
        """A finding, with its folder if it is new."""
        if finding.fingerprint in self.known:
            return ToldFinding(finding.fingerprint, finding.title, {})
        return self._proved(finding, model)

    def _proved(self, finding: Finding, model: Model) -> ToldFinding:
        has = self.has
        script = write_finding(has.pool, finding, has.targets, has.hellos, self.out)
        repros = {finding.fingerprint: script} if script else {}
        self.known.add(finding.fingerprint)
        return ToldFinding(
            finding.fingerprint, finding.title, finding_result(finding, model, repros)
        )


def _lines_of(runs: Mapping[str, Run]) -> dict[str, LinesReached]:
    """What of its library each target ran for the first time, where it tells."""
    replies = {name: run.reply for name, run in runs.items() if run.ok}
    return {
        name: reply.lines
        for name, reply in replies.items()
        if isinstance(reply, Ran) and reply.lines is not None
    }


def _digests(trials: Iterable[Trial]) -> set[str]:
    """Weights and inputs of mutants."""
    found: set[str] = set()
    for trial in trials:
        found |= {w.digest for layer in trial.subject.model.layers for w in layer.weights}
        found |= set(trial.seed.inputs) if isinstance(trial, Mutant) else set()
    return found
