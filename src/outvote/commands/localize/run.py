"""`outvote localize CASE`: which layers and which of their parameters make targets differ."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from outvote.bench.reader import choose_reference, helpers, read_model, reader, start_targets
from outvote.commands.localize.job import LocalizeJob
from outvote.commands.localize.result import localize_result
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.core.case import Data, fit, load_data, random_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.protocol import RunModel
from outvote.judge.compare import distance
from outvote.localize.parameters import Localizer, Located
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_all_settled
from outvote.run.watch import Watch, silent
from outvote.targets.environments.provide import provide

_RANDOM_INPUTS = 16


def run(job: LocalizeJob, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job in workers of its own and, where it names a folder, write the reports."""
    inspect(job.model, None)
    if len(job.targets) < 2:
        raise UsageError(
            f"a comparison needs two targets; received {', '.join(t.name for t in job.targets)}, "
            "name more with --targets"
        )
    if job.data is not None:
        load_data(job.data)
    with recording("localize", job.out, view.watch) as record:
        job = replace(job, targets=provide(job.targets, job.links, view.announce))
        with LocalPool((*job.targets, *helpers(job.targets)), limits=job.limits) as pool:
            result = localize_in(pool, job, record)
        return record.publish(result)


def localize_in(pool: Pool, job: LocalizeJob, watch: Watch = silent) -> dict[str, Any]:
    """The same in a pool that has the targets. Stopped with Ctrl-C, pairs that are done stay."""
    began, created = time.monotonic(), datetime.now(UTC)
    names = [target.name for target in job.targets]
    hellos = start_targets(pool, names, watch)
    with watch("Reading the model", pool, names):
        model, _ = read_model(pool, job.model, None, (*job.targets, *helpers(job.targets)))
        data = _data(job, model)
    with watch(f"Running {data.count} inputs", pool, names):
        outputs = _outputs(pool, model, data, names)
    reference = choose_reference(list(outputs), {t.name: t for t in job.targets})
    localizer = Localizer(pool, reader(job.targets).name, job.t1, job.t2)
    located: list[tuple[int, Located]] = []
    interrupted = False
    try:
        for other in (name for name in outputs if name != reference):
            row = _worst(outputs[reference], outputs[other])
            with watch(f"Localising {reference} / {other}", pool, [reference, other]):
                found = localizer.locate(model, data.take([row]), reference, other)
            located.append((row, found))
    except KeyboardInterrupt:
        interrupted = True
    missing = [name for name in names if name not in outputs]
    return localize_result(
        job,
        hellos,
        model,
        data,
        located,
        missing,
        interrupted=interrupted,
        created=created,
        seconds=time.monotonic() - began,
    )


def _data(job: LocalizeJob, model: Model) -> Data:
    if job.data is None:
        return random_data(model, _RANDOM_INPUTS, job.seed)
    return fit(load_data(job.data), model, str(job.data), allow_nan=True)


def _outputs(pool: Pool, model: Model, data: Data, names: Sequence[str]) -> dict[str, Outputs]:
    request = RunModel(
        model=model,
        inputs=tuple(pool.blobs.put(array) for array in data.inputs),
        batch=min(data.count, 32),
        steps=len(model.layers) * -(-data.count // 32),
    )
    runs = ask_all_settled(pool, names, request)
    found = {n: r.reply.outputs for n, r in runs.items() if r.ok}
    if len(found) < 2:
        told = "; ".join(f"{n}: {r.message[:200]}" for n, r in runs.items() if not r.ok)
        raise UsageError(f"fewer than two targets can run the model, nothing to compare: {told}")
    return found


def _worst(a: Outputs, b: Outputs) -> int:
    """The input on which two targets are farthest apart."""
    count = min(len(a.rows[0]), len(b.rows[0]))
    distances = [distance(a.instances([i]), b.instances([i])) for i in range(count)]
    return int(np.argmax(np.nan_to_num(distances, nan=np.inf)))
