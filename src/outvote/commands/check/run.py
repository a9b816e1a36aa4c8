"""`outvote check`: one model, many targets; do they agree, and if not, which layer is to blame?

The straight line: start workers → read the model → run it everywhere → compare every pair →
measure the noise floor → localise → findings → result.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from outvote.bench.bench import Bench
from outvote.bench.feigned import without_feigned
from outvote.bench.noise import NoiseFloor, choose_instruments, measure_noise
from outvote.bench.reader import case_run, helpers, start_targets
from outvote.commands.check.case import read_case
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.train import as_trained, lesson_check
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.core.case import Case, balanced_batch, load_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Run, Target
from outvote.findings.blame import Blame, amplified_rounding
from outvote.findings.evidence import write_evidence
from outvote.findings.finding import Finding
from outvote.fleet.fleet import pool_on
from outvote.judge.compare import Comparison, compare_all, pairs_of
from outvote.judge.distances import spread
from outvote.judge.precision import coarser
from outvote.judge.tolerance import CHAOTIC, HARDLY, MORE_PROBES, PROBES
from outvote.localize.layers import Localization
from outvote.report.folder import saved
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_all_settled
from outvote.run.watch import Watch, silent
from outvote.targets.environments.provide import Announce, provide, unseen
from outvote.triage.confirm import confirmed
from outvote.triage.examine import TOGETHER, Examiner
from outvote.triage.relate import Relater

_RELATED = 4  # inputs on which targets are held against themselves


def run(job: Job, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job and, where it names a folder, write every report into it."""
    with recording("check", job.out, view.watch, job.gate) as record:
        return record.publish(check_result(run_check(job, record, view.announce, job.out)))


def run_check(
    job: Job, watch: Watch = silent, announce: Announce = unseen, out: Path | None = None
) -> Checked:
    """Do the job with workers of its own; where a folder is given, it gets the evidence."""
    inspect(job.model, job.weights)
    everyone = [*job.targets, *helpers(job.targets)]
    means: dict[str, Any] = {
        "limits": job.limits, "custom": job.custom, "allow_code": job.allow_code
    }  # fmt: skip
    if job.cluster is not None:  # environments are built where the targets run
        with pool_on(job.cluster, everyone, links=job.links, **means) as there:
            return check_in(there, job, watch, out)
    job = replace(job, targets=provide(job.targets, job.links, announce))
    with LocalPool([*job.targets, *helpers(job.targets)], jobs=job.jobs, **means) as pool:
        return check_in(pool, job, watch, out)


def check_in(pool: Pool, job: Job, watch: Watch = silent, out: Path | None = None) -> Checked:
    """Do the job in a pool that has its targets, started or not."""
    began = time.monotonic()
    check = Check.opened(pool, job, watch)
    checked = check.checked
    try:
        check.run()
    except KeyboardInterrupt:
        if not checked.runs:
            raise
        check.stop()
    for finding in checked.findings:
        watch.tell(finding.met)
    checked.peaks = dict(pool.peaks)
    checked.seconds = time.monotonic() - began
    if out is not None and not checked.interrupted:
        saved(lambda: check.write_evidence(out), out)
    return checked


class Check:
    """A check in progress: where it runs, who follows it, and what it has found so far."""

    def __init__(self, pool: Pool, checked: Checked, watch: Watch = silent) -> None:
        self.pool = pool
        self.checked = checked
        self.job, self.case = checked.job, checked.case
        self.watch = watch

    @classmethod
    def opened(cls, pool: Pool, job: Job, watch: Watch = silent, case: Case | None = None) -> Check:
        """Start the targets and read the model: from here on there is something to keep.

        With a case there is no model to read.
        """
        names = [target.name for target in job.targets]
        if len(names) < 2 and not (names and job.oracle):
            raise UsageError(
                f"a comparison needs two targets; received {', '.join(names) or 'none'}, "
                "name more with --targets"
            )
        # A data file that cannot be read is said before any framework is started.
        arrays = load_data(job.data) if isinstance(job.data, Path) else job.data
        hellos = start_targets(pool, names, watch)
        if case is None:
            with watch("Reading the model", pool, names):
                case = read_case(pool, job, arrays)
        checked = Checked(job, hellos, case)
        if job.lesson is not None:
            as_trained(pool, checked)
        return cls(pool, checked, watch)

    @property
    def targets(self) -> dict[str, Target]:
        """The targets of the job, by name."""
        return {target.name: target for target in self.job.targets}

    @property
    def blame(self) -> Blame:
        """Localises on the targets that have finished."""
        job = self.job
        return Blame(self.pool, self.case, job.settings, job.batch_size, self.checked.outputs)

    def run(self) -> None:
        """Every stage, in order."""
        checked = self.checked
        self.run_everywhere()
        self.locate_failures()
        checked.comparisons = self.compared()
        unclear = [pair for pair in checked.comparisons if pair.inconsistent]
        if unclear:
            self.explain(unclear)
        if not self.case.data.count:
            checked.warnings.append(
                "the batch is empty: only errors, shapes and types were compared, no values"
            )
        elif len(checked.outputs) > 1 and checked.verdict == "consistent":
            self.look_inside()
        checked.findings = _told_once(self.own_precision(f) for f in checked.findings)
        if self.job.minimise > 0 and any(f.triage != "precision" for f in checked.findings):
            self.examine()
        if self.job.oracle:
            self.relate()
        if self.job.lesson is not None:
            self.train(self.job.lesson)

    def stop(self) -> None:
        """End early: what has finished is compared, nothing more is asked."""
        checked = self.checked
        checked.interrupted = True
        if not checked.comparisons:
            checked.comparisons = self.compared()

    def compared(self) -> list[Comparison]:
        """Those that finished, pair by pair."""
        outputs = self.checked.outputs
        pairs = pairs_of({name: self.targets[name] for name in outputs})
        return compare_all(outputs, self.case.truth, self.job.settings, pairs)

    def run_everywhere(self) -> None:
        """The whole case on every target."""
        checked, names, data = self.checked, list(self.targets), self.case.data
        batch = balanced_batch(data.count, self.job.batch_size)
        request = RunModel(
            model=self.case.model,
            inputs=tuple(self.pool.blobs.put(array) for array in data.inputs),
            batch=batch,
            steps=len(self.case.model.layers) * max(1, -(-data.count // max(1, batch))),
        )

        def done(run: Run[Ran]) -> None:  # noted at once: an interruption keeps what has finished
            run = without_feigned(run, self.targets)
            checked.runs[run.target] = run
            self.watch.tell(case_run(run))
            if run.ok:
                checked.outputs[run.target] = run.reply.outputs

        with self.watch(f"Running {data.count} input{'s' * (data.count != 1)}", self.pool, names):
            ask_all_settled(self.pool, names, request, done=done)
        checked.runs = {name: checked.runs[name] for name in names}
        checked.outputs = {name: checked.outputs[name] for name in names if name in checked.outputs}
        _require_one(checked.runs)

    def locate_failures(self) -> None:
        """Where targets failed, which layer it was."""
        checked = self.checked
        if not all(run.ok for run in checked.runs.values()):
            with self.watch("Localising failures", self.pool, list(self.targets)):
                checked.findings += self.blame.failures(checked.runs)
        if not self.job.oracle:
            _require_comparison(checked)

    def explain(self, unclear: Sequence[Comparison]) -> None:
        """Rounding or not, and if not, whose and where.

        The noise of the whole graph is measured closely only where no layer alone is to blame.
        """
        checked, blame = self.checked, self.blame
        for rounds in ((PROBES,), (PROBES, MORE_PROBES)):
            with self.watch("Measuring the noise floor", self.pool, list(checked.outputs)):
                checked.noise = self.measure_noise(unclear, rounds)
            if checked.noise is not None:
                checked.explained = checked.noise.explained(unclear, checked.outputs)
            with self.watch("Localising", self.pool, list(checked.outputs)):
                found = blame.differences(checked.comparisons, checked.explained, checked.noise)
            if checked.noise is None or not checked.noise.is_close(checked.outputs):
                break
            if all(finding.fault is not None for finding in found):
                break
        checked.findings += found
        checked.findings += amplified_rounding(
            self.case.model, unclear, checked.explained, checked.noise
        )

    def measure_noise(
        self, unclear: Sequence[Comparison], rounds: Sequence[Sequence[int]]
    ) -> NoiseFloor | None:
        """How far rounding alone moves the outputs, on the inputs that part these pairs."""
        outputs = self.checked.outputs
        return measure_noise(
            self.pool,
            self.case,
            outputs,
            unclear,
            choose_instruments({name: self.pool.targets[name] for name in outputs}),
            self.job.settings,
            self.job.batch_size,
            rounds,
        )

    def look_inside(self) -> None:
        """Compare every layer where the user wants it, or where the outputs say little.

        They do when they hardly depend on the inputs, and when rounding moves them so far that a
        fault could hide behind it: a layer alone amplifies nothing.
        """
        checked = self.checked
        arrays = [array for outputs in checked.outputs.values() for array in outputs.rows]
        moved = max(map(spread, arrays))
        if moved >= HARDLY and not self.job.every_layer and not checked.explained:
            return
        hidden = [pair for pair in checked.comparisons if pair.targets in checked.explained]
        index = hidden[0].worst_input if hidden else 0
        with self.watch("Comparing every layer", self.pool, list(checked.outputs)):
            found, located = self.blame.inside(index)
        checked.findings += found
        told = self._compared(located, index)
        if self.case.data.count == 1:
            checked.warnings.append(f"one input shows little of what a model does; {told}")
        elif moved < HARDLY:
            checked.warnings.append(
                f"the outputs hardly depend on the inputs (they move by {moved:.1g}, relative): "
                f"equal outputs say little; {told}"
            )
        floor = checked.noise.largest() if checked.noise is not None else 0.0
        if hidden and floor > CHAOTIC:
            checked.warnings.append(
                f"one unit in the last place of tensors moves the outputs by {floor:.1g} "
                "(relative): the model is chaotic or draws random numbers, and its outputs say "
                f"nothing of the targets; {told}"
            )
        if self.job.every_layer and located.compared < len(self.case.model.layers):
            checked.warnings.append(told)

    def _compared(self, located: Localization, index: int) -> str:
        """How many layers were compared alone; none, where the user asks for them, is an error."""
        count = len(self.case.model.layers)
        gone = "; ".join(f"{name} was left out {why}" for name, why in located.left_out.items())
        if self.job.every_layer and not located.compared:
            raise UsageError(
                f"--every-layer: none of the {count} layers could be compared alone: {gone}"
            )
        told = f"{located.compared} of {count} layers were compared alone, on input {index}"
        return f"{told}; {gone}" if gone else told

    def own_precision(self, finding: Finding) -> Finding:
        """A target that says it computes in fewer bits is not wrong for rounding to them."""
        explained = self._explained(finding)
        if finding.kind != "inconsistency" or not explained or finding.distance is None:
            return finding
        times = finding.distance / explained
        for name in finding.targets:
            setting = coarser(self.checked.hellos[name].reply.precision)
            layers = [finding.layer] if finding.layer else self.case.model.layers
            if setting and any(setting.explains(times, layer) for layer in layers):
                reason = f"{name} computes {setting.what}in {setting.name} by its own setting"
                return finding.but(
                    triage="precision",
                    reason=f"{finding.reason} {reason}, which explains {finding.distance:.2g}.",
                )
        return finding

    def _explained(self, finding: Finding) -> float | None:
        """The relative distance that rounding in float32 explains where a finding shows."""
        noise = self.checked.noise
        if finding.fault is not None:
            return finding.fault.tolerance
        return noise.limit(finding.inputs[0]) if noise and finding.inputs else None

    def examine(self) -> None:
        """Make every finding small, and give it a verdict; equal causes become one."""
        job, checked = self.job, self.checked
        ran = {name: t for name, t in self.targets.items() if checked.hellos[name].ok}
        examiner = Examiner(self.pool, ran, job.settings, job.minimise)
        found: dict[str, Finding] = {}
        with self.watch("Making findings small", self.pool, list(ran)):
            for finding in checked.findings:
                inputs = self.case.data.take_one(finding.inputs)
                batch = self.case.data.take(range(min(TOGETHER, self.case.data.count)))
                examined = examiner.examine(finding, self.case.model, inputs, batch)
                found.setdefault(examined.fingerprint, examined)
        checked.findings = list(found.values())
        if job.confirm > 0:
            with self.watch("Confirming in fresh workers", self.pool, list(ran)):
                checked.findings = confirmed(examiner.bench, checked.findings, job.confirm)

    def relate(self) -> None:
        """Hold every target against itself, on a few inputs."""
        job, checked, data = self.job, self.checked, self.case.data
        bench = Bench(self.pool, self.targets, job.settings)
        relater = Relater(bench, job.minimise, job.confirm, checked.relations)
        few = data.take(range(min(_RELATED, data.count)))
        names = list(checked.outputs)
        with self.watch("Holding targets against themselves", self.pool, names):
            for name in names:
                checked.findings += relater.of_model(name, self.case.model, few)
        if not checked.relations and len(names) < 2:
            raise UsageError(
                f"--oracle {job.oracle}: no relation has a meaning for this model on {names[0]}, "
                "so nothing was compared; add targets with --targets"
            )

    def train(self, lesson: Lesson) -> None:
        """Compare training on the first batch, stage by stage."""
        checked = self.checked
        found = lesson_check(self.pool, checked, lesson)
        checked.trained = found.trained
        with self.watch("Comparing training", self.pool, found.names):
            found.run()
        checked.findings += found.trained.findings
        checked.warnings += found.trained.warnings

    def write_evidence(self, out: Path) -> None:
        """A folder per finding, with its repro script where there is one."""
        checked = self.checked
        checked.repros = write_evidence(
            self.pool, checked.findings, self.targets, checked.hellos, out
        )


def _told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Of precision, which is not looked into, the first of what is the same."""
    told: list[Finding] = []
    for finding in findings:
        same = {other.fingerprint for other in told if other.triage == "precision"}
        if finding.triage != "precision" or finding.fingerprint not in same:
            told.append(finding)
    return told


def _require_one(runs: Mapping[str, Run]) -> None:
    if not any(run.ok for run in runs.values()):
        raise UsageError(
            f"no target could run the model, so nothing was compared: {_failures(runs)}"
        )


def _require_comparison(checked: Checked) -> None:
    if len(checked.outputs) < 2 and not checked.findings:
        raise UsageError(
            f"only {next(iter(checked.outputs))} could run the model, so nothing was compared: "
            f"{_failures(checked.runs)}; add targets with --targets"
        )


def _failures(runs: Mapping[str, Run]) -> str:
    told = {name: " ".join(run.message.split())[:200] for name, run in runs.items() if not run.ok}
    return "; ".join(f"{name}: {message}" for name, message in told.items())
