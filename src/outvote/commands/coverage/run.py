"""`outvote coverage`: how much of a model a test set exercises.

Neuron coverage is DeepXplore's (4.1, 7.1); k-multisection, boundary, strong activation and top-k
coverage are DeepGauge's (Ma et al., ASE 2018). Everything kept of a test set is one row of numbers
per neuron, so that adding inputs costs one pass over the new ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from outvote.bench.reading import read_model
from outvote.commands.explore.result import THRESHOLDS, layer_coverage
from outvote.core.arrays import Array
from outvote.core.case import Data, fit, load_data
from outvote.core.errors import UsageError
from outvote.core.model import Model, digest_of
from outvote.core.result import SCHEMA
from outvote.core.target import Run, Target
from outvote.core.version import VERSION
from outvote.dialects.keras.files import inspect
from outvote.explore.asking import ask
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits
from outvote.run.watch import Watch, silent


@dataclass(frozen=True)
class CoverageJob:
    """Everything that can be chosen."""

    model: Path
    data: Path | Mapping[str, Array]
    target: Target
    threshold: float = 0.25
    train: Path | Mapping[str, Array] | None = None  # gives each neuron's usual range
    sections: int = 1000
    top: int = 3
    state: Path | None = None  # what earlier inputs covered; it is read, then written
    skip: tuple[str, ...] = ()
    count: int | None = None
    batch_size: int = 128
    custom: Path | None = None
    allow_code: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class State:
    """What a test set did to the neurons; merging two is taking the larger (or smaller) of each."""

    best: Array  # largest scaled value
    high: Array  # largest and smallest plain value
    low: Array
    top: Array  # was among the k largest of its layer
    sections: Array  # (neuron, section): was in this part of its usual range
    train_low: Array  # the usual range; empty without training data
    train_high: Array
    tests: int

    def merged(self, other: State) -> State:
        return State(
            np.maximum(self.best, other.best),
            np.maximum(self.high, other.high),
            np.minimum(self.low, other.low),
            self.top | other.top,
            self.sections | other.sections,
            self.train_low,
            self.train_high,
            self.tests + other.tests,
        )


def run_coverage(job: CoverageJob, watch: Watch = silent) -> dict[str, Any]:
    """Measure with a worker of its own; the dict that result.json holds."""
    inspect(job.model, None)
    with LocalPool(
        [job.target], limits=job.limits, custom=job.custom, allow_code=job.allow_code
    ) as pool:
        return coverage_in(pool, job, watch)


def coverage_in(pool: Pool, job: CoverageJob, watch: Watch = silent) -> dict[str, Any]:
    """Measure in a pool that has the target, started or not."""
    began, created = time.monotonic(), datetime.now(UTC)
    names = [job.target.name]
    arrays = _loaded(job.data)
    with watch("Starting", pool, names):
        hello = pool.start(names)[job.target.name]
    if not hello.ok:
        raise UsageError(f"target {job.target.name!r} could not be started: {hello.message}")
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
    head = {"created": created.isoformat(timespec="seconds"), "seconds": round(seconds, 3)}
    return _result(job, model, data, hello, layers, state, head)


def _loaded(data: Path | Mapping[str, Array]) -> dict[str, Array]:
    return load_data(data) if isinstance(data, Path) else dict(data)


def _source(data: Path | Mapping[str, Array]) -> str:
    return str(data) if isinstance(data, Path) else "arrays"


def _first(arrays: dict[str, Array], count: int | None) -> dict[str, Array]:
    return {k: a[:count] if a.ndim else a for k, a in arrays.items()}


def _open(pool: Pool, job: CoverageJob, model: Model, data: Data) -> list[dict[str, Any]]:
    arguments = {
        "models": [model.to_json()],
        "sample": [pool.blobs.put(array) for array in data.inputs],
        "kind": "any",
        "skip": list(job.skip),
        "threshold": job.threshold,
        "batch": job.batch_size,
    }
    layers: list[dict[str, Any]] = ask(pool, job.target, "open", arguments).reply["layers"][0]
    if not layers:
        raise UsageError(f"{job.model.name} has no layer whose neurons count; see --skip")
    return layers


def _measured(
    pool: Pool, job: CoverageJob, data: Data, profile: tuple[Array, Array] | None
) -> State:
    arguments = {
        "inputs": [pool.blobs.put(array) for array in data.inputs],
        "profiled": profile is not None,
        "section_count": job.sections,
        "top": job.top,
        "total": data.count,
    }
    run = ask(pool, job.target, "measure", arguments, profile or (), steps=data.count)
    best, high, low, _, top, *rest = run.arrays
    none = np.zeros(0)
    sections = rest[0] if rest else np.zeros((len(best), 0), bool)
    train_low, train_high = profile or (none, none)
    return State(best, high, low, top, sections, train_low, train_high, data.count)


def _require_same_range(before: State, profile: tuple[Array, Array]) -> None:
    same = len(before.train_low) and np.array_equal(before.train_low, profile[0])
    if not (same and np.array_equal(before.train_high, profile[1])):
        raise UsageError(
            "the state was made with other training data, so its sections mean something else; "
            "leave --train out to go on with its own, or give another --state file"
        )


def _read_state(path: Path, identity: str) -> State | None:
    if not path.exists():
        return None
    arrays = load_data(path)
    if str(arrays.pop("identity", "")) != identity:
        raise UsageError(
            f"{path} was made for another model or with another --skip, --top or --sections; "
            "give another file to --state"
        )
    try:
        return State(**{**arrays, "tests": int(arrays["tests"])})  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is not a state of `outvote coverage`: {error}") from error


def _write_state(path: Path, identity: str, state: State) -> None:
    values = {name: np.asarray(value) for name, value in vars(state).items()}
    half = path.with_name(f".{path.name}.new")  # an interruption must not cost the old state
    with half.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, identity=np.array(identity), **values)
    half.replace(path)


def _result(
    job: CoverageJob,
    model: Model,
    data: Data,
    hello: Run,
    layers: list[dict[str, Any]],
    state: State,
    head: dict[str, Any],
) -> dict[str, Any]:
    covered = layer_coverage(layers, state.best, job.threshold)
    told = f"{covered['covered']} of {covered['neurons']} neurons are covered"
    return {
        "schema": SCHEMA,
        "command": "coverage",
        "outvote": VERSION,
        **head,
        "summary": f"{told} at t = {job.threshold:g} by {state.tests} inputs.",
        "warnings": [],
        "findings": [],
        "targets": [{"name": job.target.name, "versions": hello.reply.get("versions", {})}],
        "model": {"name": model.name, "path": str(job.model), "layers": len(model.layers)},
        "data": {"source": data.source, "instances": data.count, "tests": state.tests},
        "settings": {
            "threshold": job.threshold,
            "sections": job.sections,
            "top": job.top,
            "skip": list(job.skip),
        },
        "coverage": {
            **covered,
            "thresholds": [[t, float((state.best > t).mean())] for t in THRESHOLDS],
            "criteria": criteria(state, job.top),
        },
    }


def criteria(state: State, top: int) -> dict[str, Any]:
    """DeepGauge's criteria; those that need training data are null without it."""
    found: dict[str, Any] = {f"top_{top}": float(state.top.mean())}
    if not len(state.train_low):
        return {**found, "k_multisection": None, "boundary": None, "strong_activation": None}
    above, below = state.high > state.train_high, state.low < state.train_low
    return {
        **found,
        "k_multisection": float(state.sections.mean()),
        "boundary": float((above.mean() + below.mean()) / 2),
        "strong_activation": float(above.mean()),
    }
