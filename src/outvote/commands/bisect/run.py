"""`outvote bisect`: which release of a package changed what a target makes of a case?

The straight line: releases between two versions → environment, worker and run for each probed
one → binary search for the first release that behaves otherwise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from outvote.bench.noise import measured
from outvote.bench.reader import arrivals, case_run, read_model
from outvote.commands.bisect.bisected import Bisected, Probe, StartedTarget
from outvote.commands.bisect.ground import Ground, ground_of
from outvote.commands.bisect.job import BisectJob
from outvote.commands.bisect.question import CaseQuestion, ReleaseQuestion, steps_question
from outvote.commands.bisect.releases import Interval, narrowed
from outvote.commands.bisect.result import bisect_result
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.core.case import Case, fit, load_data, random_data
from outvote.core.dialect import dialect, inspect
from outvote.core.errors import UsageError
from outvote.core.files import write_atomically
from outvote.core.outputs import Outputs
from outvote.core.protocol import Hello, Request
from outvote.core.requirements import version_of
from outvote.core.target import Outcome, Run, Target
from outvote.core.truth import Truth
from outvote.findings.issue_text import with_releases
from outvote.judge.compare import Settings, distance, mismatch_of
from outvote.judge.rounding import Rounding, model_rounding
from outvote.judge.vote import vote
from outvote.run.pool import Pool
from outvote.run.settle import ask_all_settled
from outvote.run.watch import Watch, silent
from outvote.targets.environments import pip
from outvote.targets.environments.provide import Announce, unseen

_RANDOM_INPUTS = 8


def run(job: BisectJob, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job and, where it names a folder, write the reports."""
    with recording("bisect", job.out, view.watch) as record:
        result = record.publish(bisect_result(run_bisect(job, record, view.announce)))
    if job.finding is not None and result["verdict"] == "changed":
        _note_in_report(job.finding / "report.md", result)
    return result


def _note_in_report(path: Path, result: dict[str, Any]) -> None:
    """The text for an upstream issue, in a finding's folder, says since when."""
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        releases = result["bisect"]["releases"]
        write_atomically(path, with_releases(text, result["summary"], releases))


def run_bisect(job: BisectJob, watch: Watch = silent, announce: Announce = unseen) -> Bisected:
    """Do the job with workers of its own."""
    inspect(job.model, None)
    arrays = load_data(job.data) if job.data else None
    found = Bisected(job)
    began = time.monotonic()
    found.releases = _between(job)
    with ground_of(job, announce) as ground:
        try:
            readers = [target.name for target in (*ground.others, *ground.against)]
            with watch("Reading the model", ground.pool, readers):
                model, shapes = read_model(ground.pool, job.model, None)
            if arrays is None:
                data = random_data(model, _RANDOM_INPUTS, job.seed)
            else:
                data = fit(arrays, model, str(job.data), allow_nan=True, allow_empty=True)
            found.source, found.instances = data.source, data.count
            case = Case(model, shapes, data, Truth())
            question: ReleaseQuestion = CaseQuestion(case)
            if job.lesson is not None:
                question = steps_question(ground.pool, case, job.lesson, job.seed)
            Bisection(ground, question, found, watch).search()
        except KeyboardInterrupt:
            if not found.probes:
                raise
            found.interrupted = True
    found.seconds = time.monotonic() - began
    return found


def _between(job: BisectJob) -> list[str]:
    """The releases on the index from the first version to the last."""
    known = pip.releases(job.package, job.links)
    if not known:
        raise UsageError(f"the index has no release of {job.package!r} that fits this Python")
    low, high = version_of(job.first), version_of(job.last)
    for version in (job.first, job.last):
        if version_of(version) not in map(version_of, known):
            near = sorted(known, key=lambda v: _apart(v, version))[:3]
            raise UsageError(
                f"{job.package} {version} is not on the index; near it are {', '.join(near)}"
            )
    if not low < high:
        raise UsageError(f"--from {job.first} is not older than --to {job.last}")
    return [version for version in known if low <= version_of(version) <= high]


def _apart(a: str, b: str) -> list[int]:
    """How far two versions are from each other, number by number."""
    numbers = zip_longest(version_of(a).release, version_of(b).release, fillvalue=0)
    return [abs(x - y) for x, y in numbers]


@dataclass
class Bisection:
    """A search in progress: the case on releases, beside the references."""

    ground: Ground
    question: ReleaseQuestion
    found: Bisected
    watch: Watch
    reference: Outputs | None = None
    rounding: Rounding = field(default_factory=lambda: Rounding(()))  # until it is measured

    @property
    def pool(self) -> Pool:
        return self.ground.pool

    def search(self) -> None:
        self._choose_reference(self.ground.against)
        at_once = self.ground.at_once(self.found.job.target)
        ends = (self.found.releases[0], self.found.releases[-1])
        if at_once > 1:
            self._probe(ends, at_once)
        first, last = (self._needed(version) for version in ends)
        if not self._differ(first, last):
            return
        widest = self.found.interval = Interval(0, len(self.found.releases) - 1)
        alike = self._as_before(first, last)

        def as_before(places: Sequence[int]) -> list[bool | None]:
            probes = self._probe([self.found.releases[place] for place in places], at_once)
            return [None if probe is None else alike(probe) for probe in probes]

        for interval in narrowed(widest, as_before, at_once):
            self.found.interval = interval

    def _choose_reference(self, against: Sequence[Target]) -> None:
        names = [target.name for target in against]
        if not names:
            return
        with self.watch("Running the references", self.pool, names):
            hellos = self._started(against)
            self.found.references = [StartedTarget(it, hellos[it.name]) for it in against]
            runs = ask_all_settled(self.pool, names, self._request())
        outputs = {name: self.question.outputs(run) for name, run in runs.items() if run.ok}
        if not outputs:
            told = "; ".join(f"{name}: {run.message}" for name, run in runs.items())
            raise UsageError(f"no target of --against could run the case: {told}")
        gaps = self._unmeasured(outputs).gaps(outputs)
        agreements = [pair for pair, gap in gaps.items() if gap.explained]
        voters = {target.name: target for target in against if target.name in outputs}
        voted = vote(voters, agreements, None)
        self.found.reference = (voted.majority or tuple(outputs))[0]
        self.reference = outputs[self.found.reference]

    def _started(self, targets: Sequence[Target]) -> Mapping[str, Run[Hello]]:
        hellos = self.pool.start([target.name for target in targets])
        for event in arrivals(hellos):
            self.watch.tell(event)
        return hellos

    def _needed(self, version: str) -> Probe:
        """One end of the range: without it there is nothing to search."""
        if version not in self.found.probes | self.found.skipped:
            self._probe([version], 1)
        probe = self.found.probes.get(version)
        if probe is None:
            raise UsageError(
                f"{self.found.job.package} {version} cannot be used, and it is an end of the "
                f"range: {self.found.skipped[version]}; choose another --from or --to"
            )
        return probe

    def _as_before(self, first: Probe, last: Probe) -> Callable[[Probe], bool]:
        """What counts as no change yet: the same verdict, or where both ends share it, the same
        result."""
        if first.consistent is not None and first.consistent != last.consistent:
            return lambda probe: probe.consistent == first.consistent
        return lambda probe: not self._differ(first, probe)

    def _probe(self, versions: Sequence[str], at_once: int) -> list[Probe | None]:
        """The case on some releases, side by side; None, and why, for one that cannot be used."""
        names = {version: self._name(version) for version in versions}
        done = len(self.found.probes) + len(self.found.skipped)
        rounds = math.ceil(math.log(max(1, len(self.found.releases) - 1), at_once + 1))
        expected = max(2 + at_once * rounds, done + len(versions))
        text = f"Probing {self.found.job.package} {', '.join(versions)}"
        text += f" ({done + len(versions)} of about {expected})"
        with self.watch(text, self.pool, list(names.values())):
            ready = [version for version in versions if self._added(version)]
            up = self._up(ready)
            found = ask_all_settled(self.pool, [names[v] for v in up], self._request())
            runs = {version: found[names[version]] for version in up}
            for run in runs.values():
                self.watch.tell(case_run(run))
            first = next((run for run in runs.values() if run.ok), None)
            if first and not any(probe.run.ok for probe in self.found.probes.values()):
                self.rounding = self._measured(first.target, self.question.outputs(first))
                self.found.tolerance = self.rounding.tolerance
            for version in up:
                self.pool.stop(names[version])
        for version, run in runs.items():
            self.found.probes[version] = self._judged(version, run)
        return [self.found.probes.get(version) for version in versions]

    def _name(self, version: str) -> str:
        job = self.found.job
        return f"{job.package}=={version}/{job.target.plain or job.target.name}"

    def _added(self, version: str) -> bool:
        """Whether a release is in the pool now; else it is skipped."""
        job, name = self.found.job, self._name(version)
        try:
            known = dialect(job.target.dialect).targets
            target = known.with_versions(job.target, (f"{job.package}=={version}",), name)
            ready = self.ground.prepared(target)
        except UsageError as error:
            self.found.skipped[version] = str(error)
            return False
        self.pool.add(ready)
        return True

    def _up(self, versions: Sequence[str]) -> list[str]:
        """Releases that have started and were not withdrawn; the others are skipped."""
        targets = {version: self.pool.targets[self._name(version)] for version in versions}
        hellos = self._started(list(targets.values()))
        up = []
        for version, target in targets.items():
            hello, why = hellos[target.name], self.ground.withdrawn(target)
            if not why:
                self.found.on_release[version] = StartedTarget(target, hello)
                why = "" if hello.ok else f"does not start: {_last_words(hello)}"
            if why:
                self.pool.stop(target.name)
                self.found.skipped[version] = why
            else:
                up.append(version)
        return up

    def _judged(self, version: str, run: Run) -> Probe:
        first = self.found.probes.get(self.found.releases[0])
        own = self.question.outputs(run) if run.ok else None
        before = self.question.outputs(first.run) if first and first.run.ok else None
        to_reference = distance(self.reference, own) if self.reference and own else None
        consistent = None
        if self.reference is not None:
            consistent = own is not None and self.rounding.explains(self.reference, own)
        to_first = distance(before, own) if before and own else None
        unfit = mismatch_of(self.reference, own) if self.reference and own else None
        return Probe(version, run, to_reference, to_first, consistent, unfit or run.message)

    def _differ(self, a: Probe, b: Probe) -> bool:
        """Whether two releases behave otherwise: verdict, kind of failure, or result."""
        if a.consistent != b.consistent:
            return True
        if a.run.ok and b.run.ok:
            return not self.rounding.explains(*map(self.question.outputs, (a.run, b.run)))
        return _failure(a.run) != _failure(b.run)

    def _unmeasured(self, outputs: Mapping[str, Outputs]) -> Rounding:
        settings = Settings(noise_factor=self.found.job.noise_factor)
        return model_rounding(outputs.values(), settings)

    def _measured(self, name: str, outputs: Outputs) -> Rounding:
        """What rounding explains, measured on the first that runs: its tensors moved a little."""
        rounding = self._unmeasured({name: outputs})
        if not self.found.instances:
            return rounding
        return measured(rounding, {name: outputs}, self.question.asking(self.pool, name), None)

    def _request(self) -> Request[Any]:
        return self.question.request(self.pool.blobs)


def _failure(run: Run) -> tuple[Outcome, object]:
    return run.outcome, run.error


def _last_words(run: Run) -> str:
    log = run.detail.strip().splitlines() if run.outcome.is_death else []
    return " ".join([run.message, *log[-1:]])[:300]
