"""`outvote targets`: is each usable here, and if not, why? Starts it and asks for a small sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from outvote.commands.targets.job import Environments, HealthJob, Removal
from outvote.commands.view import UNSEEN, View
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.protocol import Hello, Ran, RunModel
from outvote.core.target import Outcome, Run, Target
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.targets.choose import install_hint, missing_packages
from outvote.targets.environments.provide import is_built, provide
from outvote.targets.environments.store import EnvironmentStore


@dataclass(frozen=True)
class Health:
    """One row of `outvote targets`."""

    name: str
    state: str  # ok, not installed, not built, not started, not here, broken
    versions: str = ""
    precision: str = ""
    remedy: str = ""
    seconds: float = 0.0  # until it had come up


_NOT_BUILT = "pip builds it when a command first names it with --targets"


def run(job: HealthJob | Environments | Removal, view: View = UNSEEN) -> dict[str, Any]:
    """What is asked of targets, or of what pip has built for them."""
    if isinstance(job, Removal):
        return {"command": "targets", "freed": EnvironmentStore().remove(job.key)}
    if isinstance(job, Environments):
        store = EnvironmentStore()
        return {"command": "targets", "environments": store.entries(), "folder": store.folder}
    return {"command": "targets", "targets": health(job, view)}


def health(job: HealthJob, view: View = UNSEEN) -> list[Health]:
    """Every target, started for real where it can be; none keeps the others from being told."""
    listed = [target for target in job.targets if job.named or target.worker != "fake"]
    found: dict[str, Health] = {}
    ready: list[Target] = []
    for target in listed:
        try:
            why = _why_not(target, job.named)
            if why is None:
                ready += provide([target], job.links, view.announce)
        except UsageError as error:
            why = Health(target.name, "not here", remedy=str(error))
        if why is not None:
            found[target.name] = why
    with LocalPool(ready) as pool:
        names = [target.name for target in ready]
        with view.watch("Starting targets", pool, names):
            hellos = pool.start()
            runs = {t.name: _probed(pool, t) for t in ready if hellos[t.name].ok}
    for target in ready:
        hello = hellos[target.name]
        told = _health(target, hello, runs.get(target.name))
        found[target.name] = replace(told, seconds=round(hello.seconds, 2))
    return [found[target.name] for target in listed]


def _why_not(target: Target, named: bool) -> Health | None:
    """Why a target is not started; None where it is."""
    if missing_packages(target):
        return Health(target.name, "not installed", remedy=install_hint(target.extra))
    if not named and target.config is not None:
        told = f"defined in {target.config}, started when --targets names it"
        return Health(target.name, "not started", remedy=told)
    if not named and not is_built(target):
        return Health(target.name, "not built", remedy=_NOT_BUILT)
    return None


def _probed(pool: Pool, target: Target) -> Run[Ran]:
    model, arrays, _ = dialect(target.dialect).targets.probe()
    inputs = tuple(pool.blobs.put(array) for array in arrays)
    return ask_settled(pool, target.name, RunModel(model=model, inputs=inputs, batch=1))


def _health(target: Target, hello: Run[Hello], run: Run[Ran] | None) -> Health:
    name = target.name
    if run is None:
        state = "not here" if hello.outcome is Outcome.UNSUPPORTED else "broken"
        return Health(name, state, remedy=hello.message)
    versions = ", ".join(f"{k} {v}" for k, v in hello.reply.versions.items())
    precision = ", ".join(f"{k} {v}" for k, v in hello.reply.precision.items())
    if not run.ok:
        return Health(name, "broken", versions, precision, run.message)
    _, _, right = dialect(target.dialect).targets.probe()
    (found,) = run.reply.outputs.arrays
    if not np.array_equal(found, right):
        given = f"a small sum gave {found.tolist()}, not {right.tolist()}"
        return Health(name, "broken", versions, precision, given)
    return Health(name, "ok", versions, precision)
