"""`outvote check`: one model, many targets; do they agree, and if not, which layer is to blame?

The straight line: start workers → read the model → run it everywhere → compare every pair →
measure the noise floor → localise → findings → result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.target import Outcome, Run, Target
from outvote.data import Data, fit, load_data, random_data
from outvote.findings import Finding, findings_from_failures, findings_from_faults
from outvote.judge.compare import Comparison, Outputs, Settings, compare_all
from outvote.judge.truth import Truth, interpret
from outvote.judge.vote import Vote, vote
from outvote.localize.localize import Localization, localize
from outvote.modelfile import inspect
from outvote.noise import NoiseFloor, choose_instruments, inputs_to_probe, measure_noise
from outvote.run.pool import Pool, Request
from outvote.run.process import Limits

Watch = Callable[[str, Pool, Sequence[str]], AbstractContextManager[object]]
_RANDOM_INPUTS = 8


@dataclass(frozen=True)
class Job:
    """Everything `check` is asked to do."""

    model: Path
    targets: tuple[Target, ...]
    weights: Path | None = None
    data: Path | Mapping[str, Array] | None = None
    settings: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)
    custom: Path | None = None
    allow_code: bool = False
    allow_nan: bool = False
    count: int | None = None  # use the first so many inputs
    batch_size: int = 32
    seed: int = 0
    jobs: int | None = None


@dataclass
class Checked:
    """What is known so far; complete at the end, and worth keeping if the user stops early."""

    job: Job
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: float = 0.0
    interrupted: bool = False
    hellos: dict[str, Run] = field(default_factory=dict)
    model: Model | None = None
    output_shapes: list[list[int | None]] = field(default_factory=list)
    data: Data | None = None
    truth: Truth = field(default_factory=Truth)
    runs: dict[str, Run] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    noise: NoiseFloor | None = None
    explained: set[tuple[str, str]] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if any(finding.triage != "precision" for finding in self.findings):
            return "inconsistent"
        return "interrupted" if self.interrupted else "consistent"


def silent(text: str, pool: Pool, names: Sequence[str]) -> AbstractContextManager[object]:
    """A Watch for callers that want no progress."""
    return nullcontext()


def run_check(job: Job, watch: Watch = silent, keep: Callable[[Pool, Checked], None] | None = None
) -> Checked:
    """Do the job. `keep` is called with the pool still open, to save what needs workers."""
    inspect(job.model, job.weights)
    checked = Checked(job)
    began = time.monotonic()
    with Pool(
        job.targets,
        limits=job.limits,
        custom=job.custom,
        allow_code=job.allow_code,
        jobs=job.jobs,
    ) as pool:
        try:
            _stages(job, checked, pool, watch)
        except KeyboardInterrupt:
            if not checked.runs:
                raise
            checked.interrupted = True
        checked.peaks = dict(pool.peaks)
        checked.seconds = time.monotonic() - began
        if keep is not None and not checked.interrupted:
            keep(pool, checked)
    return checked


def _stages(job: Job, checked: Checked, pool: Pool, watch: Watch) -> None:
    names = list(pool.targets)
    # A data file that cannot be read is said before any framework is started.
    arrays = load_data(job.data) if isinstance(job.data, Path) else job.data
    with watch("Starting", pool, names):
        checked.hellos = pool.start()
    _require_started(checked.hellos)
    with watch("Reading the model", pool, names[:1]):
        checked.model, checked.output_shapes = read_model(pool, job.model, job.weights)
    checked.data = _data(job, checked.model, arrays)
    checked.truth = interpret(checked.data.truth, checked.output_shapes[0])
    _require_metric(job.settings, checked.truth)
    count = checked.data.count
    with watch(f"Running {count} input{'s' * (count != 1)}", pool, names):
        _run_everywhere(job, checked, pool)
    finished = {name: pool.targets[name] for name in names if checked.runs[name].ok}
    _require_comparable(checked.runs)
    checked.findings += findings_from_failures(checked.runs, pool.targets, checked.model)
    if len(finished) < 2:
        return
    checked.comparisons = compare_all(checked.outputs, checked.truth, job.settings)
    unclear = [pair for pair in checked.comparisons if pair.inconsistent]
    if not unclear:
        return
    with watch("Measuring the noise floor", pool, list(finished)):
        _measure(job, checked, pool, unclear, finished)
    with watch("Localising", pool, list(finished)):
        _localise(checked, pool, unclear, finished)


def read_model(
    pool: Pool, path: Path, weights: Path | None
) -> tuple[Model, list[list[int | None]]]:
    """Read the file in the first worker that can; released libraries before patched ones."""
    order = sorted(pool.targets.values(), key=lambda t: (t.setup is not None, t.mode != "eager"))
    arguments = {
        "path": str(path.absolute()),
        "weights": str(weights.absolute()) if weights else None,
    }
    failures = []
    for target in order:
        run = pool.ask(target.name, Request("read", arguments))
        if run.ok:
            return Model.from_json(run.reply["model"]), run.reply["output_shapes"]
        failures.append(run)
        if run.reply.get("type") == "refused":
            break
    first = failures[-1] if failures[-1].reply.get("type") == "refused" else failures[0]
    if first.outcome is Outcome.ERROR:
        raise UsageError(first.message)
    raise UsageError(f"reading {path} failed in {first.target}: {first.message}")


def balanced_batch(count: int, limit: int) -> int:
    """The largest batch up to the limit that divides the inputs evenly, if one is not too small.

    A smaller last batch has another shape, for which compilers start again.
    """
    if count <= limit:
        return count
    even = next(size for size in range(limit, 0, -1) if count % size == 0)
    return even if even >= limit // 2 else limit


def _require_started(hellos: Mapping[str, Run]) -> None:
    for name, run in hellos.items():
        if not run.ok:
            log = run.detail.strip().splitlines()
            last = f" (last line of its log: {log[-1][:200]})" if log else ""
            raise UsageError(
                f"target {name!r} could not be started: {run.message}{last}; "
                "leave it out with --targets, or see `outvote targets`"
            )


def _require_metric(settings: Settings, truth: Truth) -> None:
    applies = {"class": truth.kind == "labels", "mad": truth.kind != "none", "relative": True}
    if not any(applies[name] for name in settings.metrics):
        raise UsageError(
            f"--metric {','.join(settings.metrics)} needs ground truth that the data does not "
            f"have (y: {truth.kind}); add y to the data or use --metric relative"
        )


def _require_comparable(runs: Mapping[str, Run]) -> None:
    if any(run.ok for run in runs.values()):
        return
    told = "; ".join(f"{name}: {run.message.splitlines()[0][:200]}" for name, run in runs.items())
    raise UsageError(f"no target could run the model, so nothing was compared: {told}")


def _data(job: Job, model: Model, arrays: Mapping[str, Array] | None) -> Data:
    if arrays is None:
        return random_data(model, job.count or _RANDOM_INPUTS, job.seed)
    source = str(job.data) if isinstance(job.data, Path) else "arrays"
    if job.count is not None:
        arrays = {name: array[: job.count] for name, array in arrays.items()}
    return fit(arrays, model, source, job.allow_nan)


def _run_everywhere(job: Job, checked: Checked, pool: Pool) -> None:
    assert checked.model is not None and checked.data is not None
    batch = balanced_batch(checked.data.count, job.batch_size)
    arguments = {
        "model": checked.model.to_json(),
        "inputs": [pool.blobs.put(array) for array in checked.data.inputs],
        "batch": batch,
    }
    steps = len(checked.model.layers) * -(-checked.data.count // batch)

    def done(run: Run) -> None:
        checked.runs[run.target] = run

    pool.ask_all(pool.targets, Request("run", arguments, steps=steps), done)
    for name in pool.targets:
        run = checked.runs[name]
        if run.ok:
            checked.outputs[name] = Outputs(run.arrays, tuple(run.reply["dtypes"]))


def _measure(
    job: Job,
    checked: Checked,
    pool: Pool,
    unclear: Sequence[Comparison],
    finished: Mapping[str, Target],
) -> None:
    assert checked.model is not None and checked.data is not None
    indices = inputs_to_probe(unclear)
    if not indices:
        return
    instruments = choose_instruments(finished)
    checked.noise = measure_noise(
        pool, checked.model, checked.data, indices, checked.outputs, instruments
    )
    if checked.noise is not None:
        factor = job.settings.noise_factor
        checked.explained = {
            pair.targets for pair in unclear if checked.noise.explains(pair, checked.outputs, factor)
        }


def _localise(
    checked: Checked, pool: Pool, unclear: Sequence[Comparison], finished: Mapping[str, Target]
) -> None:
    """Localise until every inconsistent pair has a finding that accounts for it."""
    voted = output_vote(checked, finished)
    reference = choose_reference(voted, finished)
    open_pairs = [pair for pair in unclear if pair.targets not in checked.explained]
    while open_pairs:
        pair = max(open_pairs, key=lambda p: len(set(p.targets) & set(voted.outvoted)))
        found, localization = _localise_pair(checked, pool, pair, reference, finished)
        checked.findings += found
        blamed = {name for finding in found for name in finding.targets}
        left = [p for p in open_pairs if p is not pair and not blamed & set(p.targets)]
        if not found:
            checked.findings.append(_unlocalised(checked, pair, voted, finished, localization))
        open_pairs = left
    for pair in unclear:
        if pair.targets in checked.explained and any(
            m.inconsistent and m.name != "relative" for m in pair.measured
        ):
            checked.findings.append(_rounding(checked, pair))


def _localise_pair(
    checked: Checked,
    pool: Pool,
    pair: Comparison,
    reference: str,
    finished: Mapping[str, Target],
) -> tuple[list[Finding], Localization]:
    """Localise on the pair's worst input; if that input alone shows nothing, on its whole batch."""
    assert checked.model is not None and checked.data is not None
    worst = pair.worst_input
    batch = balanced_batch(checked.data.count, checked.job.batch_size)
    start = worst // batch * batch
    whole = list(range(start, min(start + batch, checked.data.count)))
    for indices in ([worst], whole):
        localization = localize(
            pool,
            checked.model,
            checked.data.take(indices),
            reference,
            finished,
            checked.job.settings,
        )
        found = [
            finding
            for finding in findings_from_faults(localization, finished, [worst])
            if not _known(finding, checked.findings)
        ]
        if found or len(whole) == 1:
            break
    return found, localization


def _known(finding: Finding, others: Iterable[Finding]) -> bool:
    return any(finding.fingerprint == other.fingerprint for other in others)


def output_vote(checked: Checked, finished: Mapping[str, Target]) -> Vote:
    """Who is outvoted by the model's outputs; pairs explained by rounding agree."""
    assert checked.model is not None
    apart = {pair.targets for pair in checked.comparisons if pair.inconsistent} - checked.explained
    agreements = [pair for pair in combinations(finished, 2) if pair not in apart]
    borrowed = next(
        (
            layer.kind
            for layer in checked.model.layers
            if any(t.implementation_of(layer.kind) != t.library for t in finished.values())
        ),
        None,
    )
    return vote(finished, agreements, borrowed)


def choose_reference(voted: Vote, finished: Mapping[str, Target]) -> str:
    """A member of the majority, released and eager if there is one."""
    candidates = voted.majority or tuple(finished)
    return min(
        candidates, key=lambda name: (finished[name].setup is not None, finished[name].mode != "eager")
    )


def _unlocalised(
    checked: Checked,
    pair: Comparison,
    voted: Vote,
    finished: Mapping[str, Target],
    localization: Localization,
) -> Finding:
    """A pair that differs though no layer alone does."""
    names = pair.targets
    accused = next((name for name in names if name in voted.outvoted), None)
    compiled = [n for n in names if finished[n].mode not in ("eager", "no-onednn")]
    compiled += [n for n in names if finished[n].backend == "openvino" and n not in compiled]
    shape = pair.mismatch is not None
    nan = any(np.isnan(m.maximum) for m in pair.measured)
    kind = "shape" if shape else "nan" if nan else "inconsistency"
    metric = next((m for m in pair.measured if m.inconsistent), None)
    worst = metric.maximum if metric is not None else float("nan")
    if compiled or kind != "inconsistency":
        triage, why = "unknown", "it shows only in the whole graph, as with a compiler's fusion"
    else:
        triage, why = "precision", "small differences of single layers add up"
    return Finding(
        kind=kind,
        title=f"{names[0]} and {names[1]} differ, and no layer alone shows it",
        reason=f"Fed with the same tensors every layer agrees: {why}. {voted.reason}.",
        targets=names,
        accused=accused if triage == "unknown" else None,
        triage=triage,
        distance=None if np.isnan(worst) else worst,
        metric=metric.name if metric else None,
        inputs=(pair.worst_input,),
        localization=localization,
    )


def _rounding(checked: Checked, pair: Comparison) -> Finding:
    metric = next(m for m in pair.measured if m.inconsistent and m.name != "relative")
    assert checked.noise is not None
    return Finding(
        kind="inconsistency",
        title=f"{pair.targets[0]} and {pair.targets[1]} differ by rounding that the model amplifies",
        reason=(
            f"{metric.name} reaches its threshold, but moving every tensor by one unit in the "
            f"last place moves the outputs by {checked.noise.largest():.2g} (relative)."
        ),
        targets=pair.targets,
        accused=None,
        triage="precision",
        distance=metric.maximum,
        metric=metric.name,
        inputs=tuple(int(i) for i in metric.triggering[:8]),
    )
