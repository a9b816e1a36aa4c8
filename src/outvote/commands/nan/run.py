"""`outvote nan`: inputs and weights that make one target give NaN, in any layer (AUDEE, 2.4.4).

Beyond the paper: the range of every layer is watched, so that the report says where numbers grew
out of their type before NaN came up.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from outvote.bench.reader import read_model, start_targets
from outvote.campaign.probes.evolution import Evolution, Evolved, ranges_request
from outvote.campaign.probes.genome import Genome
from outvote.campaign.probes.prober import MOST_WEIGHTS
from outvote.commands.nan.job import NanJob
from outvote.commands.nan.result import nan_result
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.core.case import Data, fit, load_data, random_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.files import named_inputs, save_npz
from outvote.core.model import Model
from outvote.core.protocol import Save
from outvote.core.target import Target
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.run.watch import Watch, silent
from outvote.search.genetic import LEVELS
from outvote.targets.environments.provide import provide

_RANDOM_INPUTS = 16
_FOREVER = 1_000_000  # generations: the time is the limit


def run(job: NanJob, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job; a folder gets the reports and, if NaN was found, the model and its input."""
    inspect(job.model, None)
    if job.data is not None:
        load_data(job.data)
    _require_ranges(job.target)
    with recording("nan", job.out, view.watch) as record:
        (target,) = provide([job.target], job.links, view.announce)
        with LocalPool([target], limits=job.limits) as pool:
            result = nan_in(pool, replace(job, target=target), record)
        return record.publish(result)


def _require_ranges(target: Target) -> None:
    if not target.can("ranges"):
        raise UsageError(f"{target.name} cannot watch its layers; choose another --target")
    if not target.is_eager:
        raise UsageError(
            f"layers are watched one by one, and {target.name} compiles them together; "
            "choose an eager target, such as torch"
        )


def nan_in(pool: Pool, job: NanJob, watch: Watch = silent) -> dict[str, Any]:
    """The same in a pool that has the target. Input after input, until NaN or the time is over."""
    name, created = job.target.name, datetime.now(UTC)
    hellos = start_targets(pool, [name], watch, {name: "--target"})
    with watch("Reading the model", pool, [name]):
        model, _ = read_model(pool, job.model, None, [job.target])
        data = _data(job, model)
    if "weight" in LEVELS[job.level] and not 0 < model.weight_count <= MOST_WEIGHTS:
        raise UsageError(
            f"{job.model.name} has {model.weight_count:,} weights, and up to {MOST_WEIGHTS:,} can "
            "evolve; use --level IN"
        )
    began = time.monotonic()
    with watch(f"Hunting NaN for up to {job.seconds:.0f} s", pool, [name]):
        found, evaluations, stopped = _search(pool, job, model, data, began)
    seconds = time.monotonic() - began
    layers = [] if stopped else _layers(pool, name, found)
    case = _write(pool, name, found, job.out) if found.failure == "nan" and job.out else None
    return nan_result(
        job,
        hellos[name],
        model,
        data,
        found,
        evaluations,
        layers,
        case,
        interrupted=stopped,
        created=created,
        seconds=seconds,
    )


def _search(
    pool: Pool, job: NanJob, model: Model, data: Data, began: float
) -> tuple[Evolved, int, bool]:
    """A population per input, in turn: the best one, how many cases, and whether it was stopped."""
    evolution = Evolution(pool, [job.target.name], job.genetic)
    best: Evolved | None = None
    evaluations = 0

    def spent() -> bool:
        return time.monotonic() - began >= job.seconds

    for turn in range(_FOREVER):
        rng = np.random.default_rng([job.seed, turn])
        row = turn % data.count
        genome = Genome(model, data.take([row]), LEVELS[job.level], pool.blobs)
        try:
            found = evolution.search(genome, rng, spent)
        except KeyboardInterrupt:
            if best is None:
                raise
            return best, evaluations, True
        evaluations += found.evaluations
        pool.blobs.keep_only({w.digest for x in model.layers for w in x.weights} | _kept(found))
        if best is None or found.failure or found.fitness > best.fitness:
            best = found
        if found.failure or spent():
            break
    assert best is not None
    return best, evaluations, False


def _kept(found: Evolved) -> set[str]:
    return {w.digest for x in found.model.layers for w in x.weights}


def _layers(pool: Pool, name: str, found: Evolved) -> list[dict[str, Any]]:
    blobs = [pool.blobs.put(np.ascontiguousarray(array)) for array in found.inputs]
    run = ask_settled(pool, name, ranges_request(found.model, blobs))
    if not run.ok:
        return []
    return [asdict(seen) for seen in run.reply.layers]


def _write(pool: Pool, name: str, found: Evolved, out: Path) -> str:
    """The model and the input, for `outvote check` or a repro by hand."""
    folder = out / "nan"
    folder.mkdir(parents=True, exist_ok=True)
    save_npz(folder / "inputs.npz", named_inputs(found.inputs))
    saved_model = ask_settled(pool, name, Save(model=found.model))
    if saved_model.ok:
        pool.blobs.copy_file(saved_model.reply.file.digest, folder / "model.keras")
    else:
        (folder / "not-saved.txt").write_text(f"{saved_model.message}\n{saved_model.detail}")
    return "nan"


def _data(job: NanJob, model: Model) -> Data:
    if job.data is None:
        return random_data(model, _RANDOM_INPUTS, job.seed)
    return fit(load_data(job.data), model, str(job.data), allow_nan=False)
