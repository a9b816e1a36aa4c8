"""`outvote coverage`: how much of a model a test set exercises.

Neuron coverage is DeepXplore's (4.1, 7.1); k-multisection, boundary, strong activation and top-k
coverage are DeepGauge's (Ma et al., ASE 2018). Everything kept of a test set is one row of numbers
per neuron, so that adding inputs costs one pass over the new ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from outvote.bench.reader import read_model, start_targets
from outvote.commands.coverage.job import CoverageJob, NeuronState
from outvote.commands.coverage.result import coverage_result
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.core.arrays import Array
from outvote.core.case import Data, fit, load_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import MeasureCoverage, OpenExplorer
from outvote.core.files import save_npz
from outvote.core.model import Model, digest_of
from outvote.explore.expedition import ask
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.watch import Watch, silent


def run(job: CoverageJob, view: View = UNSEEN) -> dict[str, Any]:
    """Measure with a worker of its own and, where the job names a folder, write the reports."""
    inspect(job.model, None)
    with recording("coverage", job.out, view.watch) as record:
        with LocalPool(
            [job.target], limits=job.limits, custom=job.custom, allow_code=job.allow_code
        ) as pool:
            result = coverage_in(pool, job, record)
        return record.publish(result)


def coverage_in(pool: Pool, job: CoverageJob, watch: Watch = silent) -> dict[str, Any]:
    """Measure in a pool that has the target, started or not."""
    began, created = time.monotonic(), datetime.now(UTC)
    names = [job.target.name]
    arrays = _loaded(job.data)
    hello = start_targets(pool, names, watch, {job.target.name: "--target"})[job.target.name]
    with watch("Reading the model", pool, names):
        model, _ = read_model(pool, job.model, None)
        data = fit(_first(arrays, job.count), model, _source(job.data), allow_nan=False)
        layers = _open(pool, job, model, data)
    identity = digest_of(model.digests(), list(job.skip), job.top, job.sections)
    before = _read_state(job.state, identity) if job.state else None
    profile = (before.train_low, before.train_high) if before else None
    if job.train is not None:
        train = fit(_loaded(job.train), model, _source(job.train), allow_nan=False)
        with watch(f"Looking at {train.count} training inputs", pool, names):
            seen = _measured(pool, job, train, None)
        profile = (seen.low, seen.high)
        if before is not None:
            _require_same_range(before, profile)
    usable = profile if profile is not None and len(profile[0]) else None
    with watch(f"Running {data.count} inputs", pool, names):
        state = _measured(pool, job, data, usable)
    if before is not None:
        state = before.merged(state)
    if job.state is not None:
        _write_state(job.state, identity, state)
    seconds = time.monotonic() - began
    return coverage_result(job, model, data, hello, layers, state, created, seconds)


def _loaded(data: Path | Mapping[str, Array]) -> dict[str, Array]:
    return load_data(data) if isinstance(data, Path) else dict(data)


def _source(data: Path | Mapping[str, Array]) -> str:
    return str(data) if isinstance(data, Path) else "arrays"


def _first(arrays: dict[str, Array], count: int | None) -> dict[str, Array]:
    return {k: a[:count] if a.ndim else a for k, a in arrays.items()}


def _open(pool: Pool, job: CoverageJob, model: Model, data: Data) -> list[dict[str, Any]]:
    request = OpenExplorer(
        models=(model,),
        sample=tuple(pool.blobs.put(array) for array in data.inputs),
        kind="any",
        skip=tuple(job.skip),
        threshold=job.threshold,
        batch=job.batch_size,
    )
    layers = ask(pool, job.target, request).reply.layers[0]
    if not layers:
        raise UsageError(f"{job.model.name} has no layer whose neurons count; see --skip")
    return layers


def _measured(
    pool: Pool, job: CoverageJob, data: Data, profile: tuple[Array, Array] | None
) -> NeuronState:
    request = MeasureCoverage(
        stored=tuple(pool.blobs.put(array) for array in data.inputs),
        profile=() if profile is None else (profile,),
        section_count=job.sections,
        top=job.top,
        total=data.count,
        steps=data.count,
    )
    (rows,) = ask(pool, job.target, request).reply.models
    none = np.zeros(0)
    sections = np.zeros((len(rows.best), 0), bool) if rows.sections is None else rows.sections
    low, high = profile or (none, none)
    return NeuronState(rows.best, rows.high, rows.low, rows.top, sections, low, high, data.count)


def _require_same_range(before: NeuronState, profile: tuple[Array, Array]) -> None:
    same = len(before.train_low) and np.array_equal(before.train_low, profile[0])
    if not (same and np.array_equal(before.train_high, profile[1])):
        raise UsageError(
            "the state was made with other training data, so its sections mean something else; "
            "leave --train out to go on with its own, or give another --state file"
        )


def _read_state(path: Path, identity: str) -> NeuronState | None:
    if not path.exists():
        return None
    arrays = load_data(path)
    if str(arrays.pop("identity", "")) != identity:
        raise UsageError(
            f"{path} was made for another model or with another --skip, --top or --sections; "
            "give another file to --state"
        )
    try:
        return NeuronState(**{**arrays, "tests": int(arrays["tests"])})  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is not a state of `outvote coverage`: {error}") from error


def _write_state(path: Path, identity: str, state: NeuronState) -> None:
    """Atomically: an interruption must not cost the old state."""
    values = {name: np.asarray(value) for name, value in vars(state).items()}
    save_npz(path, {"identity": np.array(identity), **values}, compressed=True)
