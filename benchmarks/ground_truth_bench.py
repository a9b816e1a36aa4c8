"""What the parts of benchmarks/ground_truth.py share: case files, patched workers, results."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ground_truth_faults import Fault
from outvote.bench.reader import read_model
from outvote.campaign import campaign
from outvote.campaign.job import Budget, FuzzJob
from outvote.campaign.progress import Progress
from outvote.commands.blocks import seeds_of
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.core.protocol import RunModel
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.zoo.catalog import GROUPS
from outvote.judge.compare import distance
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits
from outvote.store import facts
from outvote.store.store import Store
from outvote.store.summary import fuzz_result

# Where one is missing, OUTVOTE_RELEASED names others; faults of the missing one are left out.
BACKENDS = tuple(os.environ.get("OUTVOTE_RELEASED", "tensorflow,jax,torch").split(","))
_QUICK = ("tensorflow", "torch", "numpy")  # beside a campaign: JAX compiles every shape
PLANTED = "planted"
LIMITS = Limits(silence_seconds=60.0)  # shorter than by default: one fault hangs on purpose

_BUILD = """
import json, sys
import keras, numpy as np
from keras import layers
folder, cases = sys.argv[1], json.load(sys.stdin)

def value(v, rng):
    if "variance" in v.name:
        return rng.uniform(0.1, 1.0, v.shape)
    if v.name == "gamma":
        return 1 + 0.2 * rng.standard_normal(v.shape)
    if len(v.shape) < 2:
        return 0.2 * rng.standard_normal(v.shape)
    return rng.standard_normal(v.shape) / np.prod(v.shape[:-1]) ** 0.5

for name, model, data, count in cases:
    rng = np.random.default_rng(0)
    made = eval(model)
    for v in made.weights:
        v.assign(value(v, rng).astype(v.dtype))
    made.save(f"{folder}/{name}.keras")
    fed = made.inputs[0]
    x = eval(data) if data else rng.normal(size=(count, *fed.shape[1:]))
    np.savez(f"{folder}/{name}.npz", x=x.astype(fed.dtype))
"""


class PlantedCase(Protocol):
    """What a case is built of."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def data(self) -> str: ...
    @property
    def count(self) -> int: ...


def build_cases(faults: Sequence[PlantedCase], folder: Path) -> None:
    """Write model and inputs of every fault, with released Keras."""
    cases = json.dumps([[f.name, f.model, f.data, f.count] for f in faults])
    env = {**os.environ, "KERAS_BACKEND": "torch"}  # compiles nothing: quickest
    command = [sys.executable, "-c", _BUILD, str(folder)]
    done = subprocess.run(command, env=env, input=cases, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"the cases could not be built: {done.stderr[-2000:]}")


def open_pool() -> LocalPool:
    """The released targets; they stay up while patched ones come and go."""
    names = dict.fromkeys((*BACKENDS, *_QUICK))  # a worker starts when it is first asked
    return LocalPool([BUILT_IN[name] for name in names], limits=LIMITS)


def plant(pool: Pool, fault: Fault) -> tuple[Target, ...]:
    """Put a fresh patched worker in the place of the last one; all targets that take part."""
    target = replace(BUILT_IN[fault.target], name=PLANTED, setup=fault.script)
    pool.add(target)
    released = _QUICK if fault.campaign else BACKENDS
    return (target, *(BUILT_IN[name] for name in released if name != fault.backend))


def effect(pool: Pool, fault: Fault, folder: Path) -> str:
    """What the plant changes on its own case: a relative distance, an outcome, or nothing ("")."""
    twin = BUILT_IN[fault.target]
    if twin.name not in pool.targets:
        pool.add(twin)
    model, _ = read_model(pool, folder / f"{fault.name}.keras", None, [BUILT_IN["torch"]])
    with np.load(folder / f"{fault.name}.npz") as file:
        x = file["x"]
    inputs, steps = (pool.blobs.put(x),), len(model.layers)
    request = RunModel(model=model, inputs=inputs, batch=len(x), steps=steps)
    released, patched = (pool.ask(name, request) for name in (twin.name, PLANTED))
    if not released.ok:
        raise SystemExit(f"{fault.name}: {twin.name} cannot run the case: {released.message}")
    if not patched.ok:
        return str(patched.outcome.value)
    apart = distance(released.reply.outputs, patched.reply.outputs)
    return "" if apart == 0 else "NaN" if math.isnan(apart) else f"{apart:.1e}"


def check_model(
    pool: Pool, targets: tuple[Target, ...], model: Path, data: Path | None, out: Path, **more: Any
) -> dict[str, Any]:
    """What `outvote check` writes into result.json, with its evidence under `out`."""
    job = Job(model, targets, data=data, limits=LIMITS, **more)
    return check_result(check_in(pool, job, out=out))


def run_campaign(
    pool: Pool, targets: tuple[Target, ...], fault: Fault, out: Path
) -> dict[str, Any]:
    """What `outvote fuzz` writes into result.json; it ends when the planted fault is found."""
    assert fault.campaign is not None
    job = FuzzJob(
        seeds=seeds_of(list(GROUPS["tiny"]), []),
        targets=targets,
        budget=Budget(mutants=fault.campaign.mutants),
        seed=fault.campaign.number,
        strategy="layers",
        inputs=4,
        limits=LIMITS,
    )
    out.mkdir(parents=True)
    with closing(Store(out, create=True)) as store:
        store.note(facts.JOB, job.stored())

        def until_found(progress: Progress) -> None:
            # Ctrl-C is how a campaign is stopped early; what was found is kept.
            if any(shows(fault, seen.data) for seen in store.findings()):
                raise KeyboardInterrupt

        campaign.run_campaign(job, pool, store, out, until_found)
        return fuzz_result(store)


def shows(fault: Fault, finding: Any) -> bool:
    """Whether a finding is about the planted target in one of the fault's layers."""
    return PLANTED in finding["targets"] and is_place(fault, finding)


def is_place(fault: Fault, finding: Any) -> bool:
    """Whether a finding names the kind of layer and the parameter that the fault is in."""
    known = not fault.layers or finding["layer_kind"] in fault.layers
    told = [finding["parameters"], finding.get("config")]
    return known and fault.holds in json.dumps(told, default=str)
