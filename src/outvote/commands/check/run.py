"""`outvote check`: one model, many targets; do they agree, and if not, which layer is to blame?

The straight line: start workers → read the model → run it everywhere → compare every pair →
measure the noise floor → localise → findings → result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from outvote.bench.noise import NoiseFloor, choose_instruments, inputs_to_probe, measure_noise
from outvote.bench.reading import read_model, require_started
from outvote.commands.check.job import Checked, Job
from outvote.commands.check.result import check_result
from outvote.core.arrays import Array
from outvote.core.case import Case, Data, balanced_batch, fit, load_data, random_data
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.outputs import Outputs, outputs_of
from outvote.core.result import Result
from outvote.core.target import Run
from outvote.core.truth import Truth
from outvote.dialects.keras.files import inspect
from outvote.findings.blame import Blame, amplified_rounding
from outvote.findings.finding import Finding
from outvote.findings.gate import STRICT, Gate
from outvote.judge.compare import Comparison, Settings, compare_all
from outvote.judge.distances import spread
from outvote.judge.tolerance import base_tolerance
from outvote.judge.truth import interpret
from outvote.report.folder import prepare_folder, saved
from outvote.run.local import LocalPool
from outvote.run.pool import Pool, Request
from outvote.run.watch import Watch, silent
from outvote.targets.choose import readers
from outvote.targets.environments.provide import Announce, provide, unseen
from outvote.triage.confirm import confirmed
from outvote.triage.examine import Examiner

_RANDOM_INPUTS = 8
_HARDLY = 1e-3  # outputs that move less than this from input to input carry no evidence
_CHAOTIC = 0.1  # a noise floor behind which any fault could hide


def run_check(
    job: Job,
    watch: Watch = silent,
    keep: Callable[[Pool, Checked], None] | None = None,
    announce: Announce = unseen,
) -> Checked:
    """Do the job with workers of its own. `keep` saves what needs them, while they live."""
    inspect(job.model, job.weights)
    job = replace(job, targets=provide(job.targets, job.links, announce))
    with LocalPool(
        [*job.targets, *readers(job.targets)],
        limits=job.limits,
        custom=job.custom,
        allow_code=job.allow_code,
        jobs=job.jobs,
    ) as pool:
        return check_in(pool, job, watch, keep)


def check_in(
    pool: Pool,
    job: Job,
    watch: Watch = silent,
    keep: Callable[[Pool, Checked], None] | None = None,
) -> Checked:
    """Do the job in a pool that has its targets, started or not."""
    checked = Checked(job)
    began = time.monotonic()
    try:
        _stages(job, checked, pool, watch)
    except KeyboardInterrupt:
        if checked.case is None or not checked.runs:
            raise
        checked.interrupted = True
        if not checked.comparisons:
            checked.comparisons = compare_all(checked.outputs, checked.case.truth, job.settings)
    checked.peaks = dict(pool.peaks)
    checked.seconds = time.monotonic() - began
    if keep is not None and not checked.interrupted:
        keep(pool, checked)
    return checked


def _stages(job: Job, checked: Checked, pool: Pool, watch: Watch) -> None:
    names = [target.name for target in job.targets]
    if len(names) < 2:
        raise UsageError(
            f"a comparison needs two targets; received {', '.join(names) or 'none'}, "
            "name more with --targets"
        )
    # A data file that cannot be read is said before any framework is started.
    arrays = load_data(job.data) if isinstance(job.data, Path) else job.data
    with watch("Starting", pool, names):
        checked.hellos = pool.start(names)
    require_started(checked.hellos)
    with watch("Reading the model", pool, names):
        case = checked.case = _case(job, pool, arrays)
    count = case.data.count
    with watch(f"Running {count} input{'s' * (count != 1)}", pool, names):
        _run_everywhere(job, case, checked, pool, names)
    _require_one(checked.runs)
    blame = Blame(pool, case, job.settings, job.batch_size, checked.outputs)
    failed = [name for name in names if not checked.runs[name].ok]
    if failed:
        with watch("Localising failures", pool, names):
            checked.findings += blame.failures(checked.runs)
    _require_comparison(checked)
    checked.comparisons = compare_all(checked.outputs, case.truth, job.settings)
    unclear = [pair for pair in checked.comparisons if pair.inconsistent]
    if unclear:
        _explain(job, checked, pool, case, blame, unclear, watch)
    if not count:
        checked.warnings.append(
            "the batch is empty: only errors, shapes and types were compared, no values"
        )
    elif len(checked.outputs) > 1 and checked.verdict == "consistent":
        _look_inside(job, checked, pool, blame, watch)
    checked.findings = [_own_precision(f, checked.hellos) for f in checked.findings]
    worth = any(f.triage != "precision" for f in checked.findings)
    if job.minimise > 0 and worth:
        _examine(job, checked, pool, case, watch)


def _examine(job: Job, checked: Checked, pool: Pool, case: Case, watch: Watch) -> None:
    """Make every finding small, and give it a verdict; equal causes become one."""
    ran = {target.name: target for target in job.targets if checked.hellos[target.name].ok}
    examiner = Examiner(pool, ran, job.settings, job.minimise)
    found: dict[str, Finding] = {}
    with watch("Making findings small", pool, list(ran)):
        for finding in checked.findings:
            inputs = case.data.take_one(finding.inputs)
            examined = examiner.examine(finding, case.model, inputs)
            found.setdefault(examined.fingerprint, examined)
    checked.findings = list(found.values())
    if job.confirm > 0:
        with watch("Confirming in fresh workers", pool, list(ran)):
            checked.findings = confirmed(examiner.bench, checked.findings, job.confirm)


def _explain(
    job: Job,
    checked: Checked,
    pool: Pool,
    case: Case,
    blame: Blame,
    unclear: Sequence[Comparison],
    watch: Watch,
) -> None:
    """Rounding or not, and if not, whose and where."""
    finished = list(checked.outputs)
    with watch("Measuring the noise floor", pool, finished):
        checked.noise = _noise(pool, case, checked.outputs, unclear)
    if checked.noise is not None:
        checked.explained = checked.noise.explained(
            unclear, checked.outputs, job.settings.noise_factor
        )
    with watch("Localising", pool, finished):
        checked.findings += blame.differences(checked.comparisons, checked.explained, checked.noise)
    checked.findings += amplified_rounding(unclear, checked.explained, checked.noise)


def _look_inside(job: Job, checked: Checked, pool: Pool, blame: Blame, watch: Watch) -> None:
    """Compare every layer where the user wants it, or where the outputs say little.

    They do when they hardly depend on the inputs, and when rounding moves them so far that a
    fault could hide behind it: a layer alone amplifies nothing.
    """
    moved = max(spread(o.arrays[i]) for o in checked.outputs.values() for i in range(len(o.arrays)))
    if moved < _HARDLY:
        checked.warnings.append(
            f"the outputs hardly depend on the inputs (they move by {moved:.1g}, relative): equal "
            "outputs say little, so every layer was compared on the first input"
        )
    elif not job.every_layer and not checked.explained:
        return
    hidden = [pair for pair in checked.comparisons if pair.targets in checked.explained]
    with watch("Comparing every layer", pool, list(checked.outputs)):
        found = blame.inside(hidden[0].worst_input if hidden else 0)
    if hidden and not job.every_layer and not checked.warnings:
        found = [f if _stands_out(f, checked.comparisons) else _harmless(f) for f in found]
    checked.findings += found
    floor = checked.noise.largest() if checked.noise is not None else 0.0
    if hidden and floor > _CHAOTIC:
        checked.warnings.append(
            f"one unit in the last place of tensors moves the outputs by {floor:.1g} (relative): "
            "the model is chaotic or draws random numbers, and its outputs say nothing of the "
            "targets; every layer was compared alone"
        )


def _stands_out(finding: Finding, pairs: Sequence[Comparison]) -> bool:
    """Whether the accused is farther from the others than they are from each other."""
    if finding.accused is None or finding.kind != "inconsistency":
        return True
    distances = {p.targets: max((m.maximum for m in p.measured), default=0.0) for p in pairs}
    with_it = [d for names, d in distances.items() if finding.accused in names]
    others = [d for names, d in distances.items() if finding.accused not in names]
    return not min(with_it, default=0.0) <= 2 * max(others, default=0.0)


def _harmless(finding: Finding) -> Finding:
    return finding.but(
        triage="precision",
        reason=f"{finding.reason} The outputs do not show it: there {finding.accused} is no "
        "farther from the others than rounding takes them from each other.",
    )


def _case(job: Job, pool: Pool, arrays: Mapping[str, Array] | None) -> Case:
    chosen = [*job.targets, *(t for t in readers(job.targets) if t.name in pool.targets)]
    model, shapes = read_model(pool, job.model, job.weights, chosen)
    data = _data(job, model, arrays)
    truth = interpret(data.truth, shapes[0])
    _require_metric(job.settings, truth)
    return Case(model, shapes, data, truth)


def _require_metric(settings: Settings, truth: Truth) -> None:
    applies = {"class": truth.kind == "labels", "mad": truth.kind != "none", "relative": True}
    if not any(applies[name] for name in settings.metrics):
        raise UsageError(
            f"--metric {','.join(settings.metrics)} needs ground truth that the data does not "
            f"have (y: {truth.kind}); add y to the data or use --metric relative"
        )


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


def _data(job: Job, model: Model, arrays: Mapping[str, Array] | None) -> Data:
    if arrays is None:
        return random_data(model, job.count or _RANDOM_INPUTS, job.seed)
    source = str(job.data) if isinstance(job.data, Path) else "arrays"
    if job.count is not None:
        arrays = {name: array[: job.count] for name, array in arrays.items()}
    return fit(arrays, model, source, job.allow_nan, job.allow_empty)


def _run_everywhere(
    job: Job, case: Case, checked: Checked, pool: Pool, names: Sequence[str]
) -> None:
    batch = balanced_batch(case.data.count, job.batch_size)
    arguments = {
        "model": case.model.to_json(),
        "inputs": [pool.blobs.put(array) for array in case.data.inputs],
        "batch": batch,
    }
    steps = len(case.model.layers) * max(1, -(-case.data.count // max(1, batch)))

    def done(run: Run) -> None:  # noted at once: an interruption keeps what has finished
        checked.runs[run.target] = run
        if run.ok:
            checked.outputs[run.target] = outputs_of(run)

    pool.ask_all(names, Request("run", arguments, steps=steps), done)
    checked.runs = {name: checked.runs[name] for name in names}
    checked.outputs = {name: checked.outputs[name] for name in names if name in checked.outputs}


def _own_precision(finding: Finding, hellos: Mapping[str, Run]) -> Finding:
    """A target that says it computes in fewer bits is not wrong for rounding to them."""
    said = hellos[finding.accused].reply["precision"].get("inference") if finding.accused else None
    dtype = {"f16": "float16", "bf16": "bfloat16"}.get(said or "")
    if dtype is None or finding.distance is None or finding.kind != "inconsistency":
        return finding
    limit = base_tolerance(dtype, 64)
    if not finding.distance < limit:
        return finding
    return finding.but(
        triage="precision",
        reason=f"{finding.reason} {finding.accused} computes in {dtype} by its own setting, "
        f"which explains {limit:.2g}.",
    )


def _noise(
    pool: Pool, case: Case, outputs: Mapping[str, Outputs], unclear: Sequence[Comparison]
) -> NoiseFloor | None:
    indices = inputs_to_probe(unclear)
    if not indices:
        return None
    instruments = choose_instruments({name: pool.targets[name] for name in outputs})
    return measure_noise(pool, case.model, case.data, indices, outputs, instruments)


def run_job(
    job: Job,
    out: Path | None,
    watch: Watch = silent,
    announce: Announce = unseen,
    gate: Gate = STRICT,
) -> Result:
    """Run a job and, where a folder is given, write every report into it."""
    repros: dict[str, str] = {}
    if out is not None:
        prepare_folder(out)

    def keep(pool: Pool, checked: Checked) -> None:
        if out is not None:
            repros.update(saved(lambda: checked.write_evidence(pool, out), out))

    checked = run_check(job, watch, keep, announce)
    data = gate.judged(check_result(checked, repros))
    if out is not None:
        from outvote.report import write_all

        saved(lambda: write_all(data, out), out)
    return Result(data, out)
