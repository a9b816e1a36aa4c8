"""The case that a job describes: its model, read by a worker, and inputs that fit it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outvote.bench.reader import helpers, read_model
from outvote.commands.check.job import Job
from outvote.core.arrays import Array
from outvote.core.case import Case, Data, fit, random_data
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.truth import Truth
from outvote.judge.compare import Settings
from outvote.judge.metrics import all_metrics
from outvote.judge.truth import interpret
from outvote.run.pool import Pool

_RANDOM_INPUTS = 8


def read_case(pool: Pool, job: Job, arrays: Mapping[str, Array] | None) -> Case:
    """The model as the first worker that can reads it, with these arrays or random ones."""
    chosen = [*job.targets, *(t for t in helpers(job.targets) if t.name in pool.targets)]
    model, shapes = read_model(pool, job.model, job.weights, chosen, job.dims)
    data = _data(job, model, arrays)
    truth = interpret(data.truth, shapes[0])
    _require_metric(job.settings, truth)
    return Case(model, shapes, data, truth)


def _data(job: Job, model: Model, arrays: Mapping[str, Array] | None) -> Data:
    if arrays is None:
        return random_data(model, job.count or _RANDOM_INPUTS, job.seed)
    source = str(job.data) if isinstance(job.data, Path) else "arrays"
    if job.count is not None:
        arrays = {n: array[: job.count] if array.ndim else array for n, array in arrays.items()}
    return fit(arrays, model, source, job.allow_nan, job.allow_empty)


def _require_metric(settings: Settings, truth: Truth) -> None:
    if not any(truth.kind in all_metrics()[name].NEEDS for name in settings.metrics):
        raise UsageError(
            f"--metric {','.join(settings.metrics)} needs ground truth that the data does not "
            f"have (y: {truth.kind}); add y to the data or use --metric relative"
        )
