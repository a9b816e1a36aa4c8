"""`outvote explore MODEL --targets A,B`: inputs on which implementations of one model differ most.

One target's gradient is followed along the difference of the outputs; the inputs on which the
targets were farthest apart then go through the same check as any other (commands/check/run.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from outvote.bench.reader import read_model, start_targets
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.commands.explore.job import BetweenTargets
from outvote.commands.record import recording
from outvote.core.arrays import Array
from outvote.core.case import fit, load_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import MoveInputs
from outvote.core.files import named_inputs, save_npz
from outvote.core.protocol import RunModel
from outvote.explore.expedition import Expedition
from outvote.explore.explore import prepare, require_neurons, require_sense
from outvote.explore.job import Explored, ModelUnderTest
from outvote.explore.legal import read_features
from outvote.judge.distances import distance_relative
from outvote.report.folder import saved
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_all_settled
from outvote.run.watch import Stage, Watch, silent


@dataclass(frozen=True)
class Walk:
    """The farthest that each seed was led."""

    inputs: list[Array]
    before: Array  # relative distance of the two farthest targets, on the seed
    after: Array
    seconds: float


def run_between(job: BetweenTargets, watch: Stage = silent) -> dict[str, Any]:
    """Do the job; the folder gets what `outvote check` writes, and the inputs that were found."""
    search = job.search
    require_sense(search)
    if len(search.models) != 1:
        raise UsageError(
            f"--targets holds implementations of one model against each other; received "
            f"{len(search.models)} models: leave --targets out, or name one model"
        )
    if len(job.targets) < 2:
        raise UsageError(
            f"a comparison needs two targets; received {job.targets[0].name}, "
            "name more with --targets"
        )
    inspect(search.models[0], None)
    with recording("explore", job.out, watch, job.gate) as record:
        with LocalPool(
            job.targets, limits=search.limits, custom=search.custom, allow_code=search.allow_code
        ) as pool:
            result = between_in(pool, job, record)
        return record.publish(result)


def between_in(pool: Pool, job: BetweenTargets, watch: Watch = silent) -> dict[str, Any]:
    """The same in a pool that has the targets; the folder gets evidence and inputs."""
    search, out = job.search, job.out
    names = [target.name for target in job.targets]
    trip = Expedition(pool, search, Explored(search, kind="any"))
    _read(trip, names, watch)
    with watch(f"Searching from {trip.data.count} seeds", pool, names):
        walk = _walk(trip, names, out)
    check = Job(
        search.models[0],
        job.targets,
        data=named_inputs(walk.inputs),
        limits=search.limits,
        custom=search.custom,
        allow_code=search.allow_code,
    )
    checked = check_in(pool, check, watch, out)
    saved(lambda: _save(walk.inputs, out), out)
    return {**check_result(checked), **_added(trip, checked, walk)}


def _read(trip: Expedition, names: Sequence[str], watch: Watch) -> None:
    pool, job, explored = trip.pool, trip.job, trip.explored
    arrays = load_data(job.data) if isinstance(job.data, Path) else dict(job.data)
    start_targets(pool, names, watch)
    with watch("Reading the model", pool, names):
        model, shapes = read_model(pool, job.models[0], None, pool.targets.values())
        for item in model.inputs:
            if "float" not in item.dtype:
                raise UsageError(
                    f"input {item.name!r} takes {item.dtype}: there is no gradient to follow to "
                    "other integers; `outvote check` compares targets on given inputs"
                )
        explored.subjects = [ModelUnderTest(job.models[0].stem, job.models[0], model, shapes[0])]
        if job.count is not None:
            arrays = {k: a[: job.count] if a.ndim else a for k, a in arrays.items()}
        source = str(job.data) if isinstance(job.data, Path) else "arrays"
        explored.data = fit(arrays, model, source, allow_nan=False)
        require_neurons(explored, trip.open(job.target))
        features = read_features(job.features) if job.features else None
        prepare(trip, features)


def _walk(trip: Expedition, names: Sequence[str], out: Path) -> Walk:
    """Climb along the difference of the two farthest targets; keep the farthest of each seed.

    Stopped with Ctrl-C, the workers are gone and nothing can be judged: the inputs are saved.
    """
    job, began = trip.job, time.monotonic()
    now = list(trip.data.inputs)
    best = [array.copy() for array in now]
    farthest = before = np.zeros(trip.data.count)
    rng = np.random.default_rng(job.seed)
    try:
        for iteration in range(job.iterations + 1):
            outputs = _outputs(trip, names, now)
            distance, weights = _difference(outputs, job.target.name, rng)
            if not iteration:
                before = farthest = distance
            better = distance > farthest
            farthest = np.where(better, distance, farthest)
            for kept, array in zip(best, now, strict=True):
                kept[better] = array[better]
            if iteration < job.iterations:
                fresh = iteration == 0
                request = MoveInputs(inputs=tuple(now), weights=(weights,), fresh=fresh)
                now = list(trip.ask(request).reply.inputs)
    except KeyboardInterrupt:
        _save(best, out)
        raise
    return Walk(best, before, farthest, time.monotonic() - began)


def _outputs(trip: Expedition, names: Sequence[str], inputs: Sequence[Array]) -> dict[str, Array]:
    """First output of every target that can run the model; the others are left to the check."""
    pool, job, model = trip.pool, trip.job, trip.explored.subjects[0].model
    request = RunModel(
        model=model,
        inputs=tuple(pool.blobs.put(array) for array in inputs),
        batch=min(job.batch_size, len(inputs[0])),
        steps=len(model.layers) * -(-len(inputs[0]) // job.batch_size),
    )
    runs = ask_all_settled(pool, names, request)
    found = {name: run.reply.outputs.arrays[0] for name, run in runs.items() if run.ok}
    if job.target.name not in found:
        run = runs[job.target.name]
        raise UsageError(f"{run.target} cannot run the model: {run.message}")
    shape = found[job.target.name].shape
    return {name: array for name, array in found.items() if array.shape == shape}


def _difference(
    outputs: Mapping[str, Array], followed: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """How far the two farthest targets are apart on each input, and in which direction.

    Where no two differ in a single bit, any direction is as good as another.
    """
    own = np.asarray(outputs[followed], np.float64)
    distance = np.zeros(len(own))
    direction = np.zeros(own.shape)
    for a, b in combinations(outputs, 2):
        apart = np.nan_to_num(distance_relative(outputs[a], outputs[b]), nan=np.inf)
        first, second = (followed, b if a == followed else a) if followed in (a, b) else (a, b)
        gap = np.asarray(outputs[first], np.float64) - np.asarray(outputs[second], np.float64)
        better = apart > distance
        direction[better] = np.nan_to_num(gap[better])
        distance = np.where(better, apart, distance)
    size = np.abs(direction).max(axis=tuple(range(1, own.ndim)), keepdims=True)
    anything = rng.choice([-1.0, 1.0], own.shape)
    weights = np.where(size > 0, direction / np.where(size > 0, size, 1), anything)
    return distance, weights.astype(np.float32)


def _added(trip: Expedition, checked: Checked, walk: Walk) -> dict[str, Any]:
    """What `explore` adds to the result of a check."""
    apart = {
        pair.targets: {int(i) for m in pair.measured if m.inconsistent for i in m.triggering}
        for pair in checked.comparisons
        if pair.inconsistent and pair.targets not in checked.explained
    }
    found = set().union(*apart.values()) if apart else set()
    per_target = {
        target.name: len(set().union(*(rows for t, rows in apart.items() if target.name in t)))
        for target in checked.job.targets
    }
    thresholds = [
        m.threshold for p in checked.comparisons for m in p.measured if m.name == "relative"
    ]
    return {
        "command": "explore",
        "seeds": trip.data.count,
        "already_different": int((walk.before >= min(thresholds, default=np.inf)).sum()),
        "differences": {"total": len(found), "per_model": per_target},
        "coverage": None,
        "distance": {
            "followed": trip.job.target.name,
            "before": float(walk.before.max()),
            "after": float(walk.after.max()),
            "grew": int((walk.after > walk.before).sum()),
        },
        "search_seconds": round(walk.seconds, 3),
        "inputs": "inputs.npz",
    }


def _save(inputs: list[Array], out: Path) -> None:
    save_npz(out / "inputs.npz", named_inputs(inputs))
