"""Is a target usable? Starts each installed one and asks for a small sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.protocol import Hello, Ran, RunModel
from outvote.core.target import Run, Target
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.run.watch import Watch
from outvote.targets.choose import install_hint, missing_packages
from outvote.targets.environments.provide import is_built, provide


@dataclass(frozen=True)
class Health:
    """One row of `outvote targets`."""

    name: str
    state: str  # ok, not installed, not built, broken
    versions: str = ""
    precision: str = ""
    remedy: str = ""


_NOT_BUILT = "pip builds it when a command first names it with --targets"


def describe_targets(known: Mapping[str, Target], watch: Watch) -> list[Health]:
    """Every known target, started for real where its packages are installed or built."""
    shown = {name: target for name, target in known.items() if target.worker != "fake"}
    missing = {name: missing_packages(target) for name, target in shown.items()}
    unbuilt = [name for name, target in shown.items() if not is_built(target)]
    usable = provide(t for n, t in shown.items() if not missing[n] and n not in unbuilt)
    found = {name: Health(name, "not built", remedy=_NOT_BUILT) for name in unbuilt}
    with LocalPool(usable) as pool:
        names = [target.name for target in usable]
        with watch("Starting targets", pool, names):
            hellos = pool.start()
            runs = {n: _probed(pool, shown[n]) for n in names if hellos[n].ok}
    for name in names:
        found[name] = _health(shown[name], hellos[name], runs.get(name))
    return [
        found.get(name) or Health(name, "not installed", remedy=install_hint(target.extra))
        for name, target in shown.items()
    ]


def _probed(pool: Pool, target: Target) -> Run[Ran]:
    model, arrays, _ = dialect(target.dialect).targets.probe()
    inputs = tuple(pool.blobs.put(array) for array in arrays)
    return ask_settled(pool, target.name, RunModel(model=model, inputs=inputs, batch=1))


def _health(target: Target, hello: Run[Hello], run: Run[Ran] | None) -> Health:
    name = target.name
    if run is None:
        return Health(name, "broken", remedy=hello.message)
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
