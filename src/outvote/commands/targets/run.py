"""`outvote targets`: is each usable here, and if not, why? Starts it and asks for a small sum."""

from __future__ import annotations

import os
from collections.abc import Sequence
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
from outvote.run.process import Limits
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


# A library that is loaded from a cold disk takes seconds; what takes a minute hangs.
PATIENCE = Limits(start_seconds=60.0, silence_seconds=60.0)
_NOT_BUILT = "pip builds it when a command first names it with --targets"


def run(job: HealthJob | Environments | Removal, view: View = UNSEEN) -> dict[str, Any]:
    """What is asked of targets, or of what pip has built for them."""
    if isinstance(job, Removal):
        return {"command": "targets", "freed": EnvironmentStore().remove(job.key)}
    if isinstance(job, Environments):
        store = EnvironmentStore()
        return {"command": "targets", "environments": store.entries(), "folder": store.folder}
    return {"command": "targets", "targets": health(job, view)}


def health(job: HealthJob, view: View = UNSEEN, limits: Limits = PATIENCE) -> list[Health]:
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
    with LocalPool(ready, limits=limits) as pool:
        names = [target.name for target in ready]
        with view.watch("Starting targets", pool, names):
            found |= _examined(pool, ready)
    return [found[target.name] for target in listed]


def _examined(pool: Pool, ready: Sequence[Target]) -> dict[str, Health]:
    """As many at a time as there are processors: each has one, and memory for all is not needed.

    What hangs in its plainest mode hangs in the others: they are not waited for.
    """
    found: dict[str, Health] = {}
    stuck: list[Target] = []
    left = sorted(ready, key=lambda target: target.mode != "eager")
    while left:
        turn: list[Target] = []
        for target in left:
            if len(turn) < (os.cpu_count() or 1) and not any(_stands_on(target, t) for t in turn):
                turn.append(target)
        left = [target for target in left if target not in turn]
        culprits = {t.name: next((s for s in stuck if _stands_on(t, s)), None) for t in turn}
        for name, culprit in culprits.items():
            if culprit is not None:
                told = f"not started: {culprit.name}, which it stands on, hangs"
                found[name] = Health(name, "broken", remedy=told)
        asked = [target for target in turn if culprits[target.name] is None]
        hellos = pool.start(target.name for target in asked)
        for target in asked:
            hello = hellos[target.name]
            run = _probed(pool, target) if hello.ok else None
            row = _health(target, hello, run)
            found[target.name] = replace(row, seconds=round(hello.seconds, 2))
            if Outcome.HANG in (hello.outcome, run.outcome if run else None):
                stuck.append(target)
            pool.stop(target.name)
    return found


def _stands_on(target: Target, other: Target) -> bool:
    """Whether a target needs all that the other, in its plainest mode, is made of."""
    same = (target.python, target.requirements) == (other.python, other.requirements)
    plain = other.mode == "eager" and bool(other.packages) and other.setup is None
    return same and plain and set(other.packages) <= set(target.packages)


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
