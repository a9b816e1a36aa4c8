"""The commands as functions. Each takes what its command takes, and returns an object.

A model is a file or, for Keras, lives in memory: it is saved to a temporary file and read again by
the workers, so custom layers need `custom`, the file that defines them. Without `out` nothing is
written. `progress` shows how far the work is: by default in notebooks only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from outvote import commands
from outvote.api.asked import job_asked
from outvote.api.given import ARRAYS, Inputs, as_data, as_file, as_files, itself, without
from outvote.api.options import (
    BisectOptions,
    CheckOptions,
    CoverageOptions,
    ExploreOptions,
    LocalizeOptions,
    NanOptions,
    PollutionOptions,
    TargetsOptions,
)
from outvote.api.progress import view_for
from outvote.api.result import Exploration, Result, TargetTable
from outvote.commands.explore.run import explored_result
from outvote.commands.targets.run import health
from outvote.core.arrays import Array
from outvote.explore.job import Explored, ExploreJob
from outvote.explore.votes import labels_of, majority
from outvote.run.folder import OwnedFolder


def check(
    model: Any,
    x: Inputs | None = None,
    y: Array | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[CheckOptions],
) -> Result:
    """Run one model on several targets: do they agree, and if not, who is wrong and where?

    Without `x` the inputs are random. `y` is what the model should answer, if that is known.
    """
    with OwnedFolder() as folder:
        file = as_file(model, folder, inputs=x)
        files, own = {"model": file, "data": as_data(x, y, folder)}, itself(file)
        job = job_asked("check", **files, **without(own, options))
        job = replace(job, targets=(*job.targets, *own))
        return _done("check", job, progress, files["data"])


def localize(
    case: Any,
    x: Inputs | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[LocalizeOptions],
) -> Result:
    """Which layers, and which of their parameters, make targets differ: `data["pairs"]`.

    `case` is a model, or the folder of a finding.
    """
    with OwnedFolder() as folder:
        files = {"case": as_file(case, folder), "data": as_data(x, None, folder)}
        return _done("localize", job_asked("localize", **files, **options), progress, files["data"])


def nan(
    model: Any,
    x: Inputs | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[NanOptions],
) -> Result:
    """Lead one target to NaN by changing inputs and weights; `data["first_nan"]` is the layer."""
    with OwnedFolder() as folder:
        data = as_data(x, None, folder)
        job = job_asked("nan", model=str(as_file(model, folder)), data=data, **options)
        return _done("nan", job, progress, data)


def bisect(
    case: Any,
    first: str,
    last: str,
    x: Inputs | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[BisectOptions],
) -> Result:
    """Which release between `first` and `last` changed what a target answers: `data["bisect"]`.

    `case` is the folder of a finding, or a model; the latter needs `target`.
    """
    with OwnedFolder() as folder:
        files = {"case": as_file(case, folder), "data": as_data(x, None, folder)}
        job = job_asked("bisect", first=first, last=last, **files, **options)
        return _done("bisect", job, progress, files["data"])


def explore(
    models: Sequence[Any],
    x: Inputs,
    *,
    progress: bool | None = None,
    **options: Unpack[ExploreOptions],
) -> Exploration:
    """Search for inputs on which models that should agree do not.

    With `targets`, implementations of one model are led apart: then the data are as of `check`, and
    the inputs lie in `out`.
    """
    with OwnedFolder() as folder:
        data = as_data(x, None, folder)
        job = job_asked("explore", models=as_files(models, folder), data=data, **options)
        if isinstance(job, ExploreJob):
            told, explored = explored_result(job, view_for(progress).watch)
            return _exploration(_named(told, data), explored, job)
        return _exploration(_done("explore", job, progress, data).data, None, job)


def coverage(
    model: Any,
    x: Inputs,
    *,
    train: Inputs | None = None,
    progress: bool | None = None,
    **options: Unpack[CoverageOptions],
) -> Result:
    """How much of a model the inputs exercise: `data["coverage"]`."""
    with OwnedFolder() as folder:
        files = {"model": as_file(model, folder), "data": as_data(x, None, folder)}
        usual = as_data(train, None, folder, "train")
        job = job_asked("coverage", train=usual, **files, **options)
        return _done("coverage", job, progress, files["data"])


def pollution(
    clean: Any,
    polluted: Any,
    x: Inputs,
    y: Array | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[PollutionOptions],
) -> Result:
    """Training samples (x, y) whose labels were falsified: `data["suspects"]`."""
    with OwnedFolder() as folder:
        data = as_data(x, y, folder)
        first, second = as_files([clean, polluted], folder)
        job = job_asked("pollution", clean=first, polluted=second, data=data, **options)
        return _done("pollution", job, progress, data)


def targets(
    names: Sequence[str] | None = None,
    *,
    progress: bool | None = None,
    **options: Unpack[TargetsOptions],
) -> TargetTable:
    """Which targets work here; those that are named are built and started in any case."""
    job = job_asked("targets", targets=names, **options)
    return TargetTable(tuple(health(job, view_for(progress))))


def _done(command: str, job: Any, progress: bool | None, data: Path | None) -> Result:
    told = commands.room(command, "run").run(job, view_for(progress))
    return Result(data=_named(told, data), folder=job.out, job=job)


def _named(told: dict[str, Any], data: Path | None) -> dict[str, Any]:
    """A temporary file of arrays is called so: its path says nothing to anybody."""
    source = told.get("data") or {}
    if data is None or source.get("source") != str(data) or data.stem != ARRAYS:
        return told
    return {**told, "data": {**source, "source": ARRAYS}}


def _exploration(told: dict[str, Any], explored: Explored | None, job: Any) -> Exploration:
    inputs: list[Array] = []
    seed = label = np.zeros(0, int)
    if explored is not None and explored.found is not None:
        inputs, seed = explored.found.inputs, explored.found.seed
        label = majority(labels_of(explored.found, explored))
    return Exploration(data=told, folder=job.out, job=job, inputs=inputs, seed=seed, label=label)
