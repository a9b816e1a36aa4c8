"""The commands from Python: `outvote.check(model, x, y, targets=[...])` and the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from outvote.commands.check.job import Job
from outvote.commands.check.run import run as run_check
from outvote.commands.coverage.job import CoverageJob
from outvote.commands.coverage.run import run as run_coverage
from outvote.commands.explore.run import explored_result
from outvote.commands.pollution.job import pollution_job
from outvote.commands.pollution.run import run as run_pollution
from outvote.config import load_config
from outvote.core.arrays import Array
from outvote.core.dialect import dialect_of, dialects
from outvote.core.errors import UsageError
from outvote.core.result import Result
from outvote.core.target import Target
from outvote.explore.job import ExploreJob
from outvote.explore.roles import confirming_target, searching_target
from outvote.explore.votes import labels_of, majority
from outvote.judge.compare import Settings
from outvote.run.folder import OwnedFolder
from outvote.targets.choose import choose_for, known_targets


def check(
    model: Any,
    x: Array | Sequence[Array] | None = None,
    y: Array | None = None,
    *,
    targets: Sequence[str] | None = None,
    out: str | Path | None = None,
    config: str | Path | None = None,
    custom: str | Path | None = None,
    allow_code: bool = False,
    allow_nan: bool = False,
    allow_empty: bool = False,
    settings: Settings | None = None,
    find_links: Sequence[str] = (),
) -> Result:
    """Check a live Keras model, or a model file, on several targets.

    A live model is saved to a temporary file and read again by the workers, so custom layers
    need `custom`, the file that defines them. With `out`, the reports are written there.
    """
    known = load_config(Path(config) if config else None)
    with OwnedFolder() as folder:
        path = as_file(model, folder)
        chosen = choose_for(dialect_of(path), targets, known)
        job = Job(
            model=path,
            targets=tuple(chosen),
            data=as_arrays(x, y),
            settings=settings or Settings(),
            custom=Path(custom) if custom else None,
            allow_code=allow_code,
            allow_nan=allow_nan,
            allow_empty=allow_empty,
            links=tuple(find_links),
            out=_folder(out),
        )
        return Result(run_check(job), job.out)


def as_file(model: Any, folder: Path, name: str = "model") -> Path:
    """The path of a model; one that lives in memory is saved under this name first."""
    if isinstance(model, str | Path):
        return Path(model)
    for wing in dialects():
        path = wing.files.saved(model, folder / name)
        if path is not None:
            return path
    raise UsageError(
        f"expected a Keras model or the path of a model file; received {type(model).__name__}"
    )


def as_arrays(x: Array | Sequence[Array] | None, y: Array | None) -> dict[str, Array] | None:
    """Inputs and ground truth under the names that they have in a data file."""
    if x is None:
        if y is not None:
            raise UsageError("y was given without x; give the inputs that y belongs to")
        return None
    several = isinstance(x, list | tuple)
    arrays = {f"x{i}": np.asarray(a) for i, a in enumerate(x)} if several else {"x": np.asarray(x)}
    return arrays if y is None else {**arrays, "y": np.asarray(y)}


Inputs = Array | Sequence[Array]


@dataclass(frozen=True)
class Exploration(Result):
    """What `explore_models` found; rows of `inputs`, `seed` and `label` belong together."""

    inputs: list[Array]  # generated, one array per input of the models
    seed: Array  # the row of x that each was made of
    label: Array  # what the majority of the models says; -1 without a majority


def explore_models(
    models: Sequence[Any],
    x: Inputs,
    *,
    constraint: str = "light",
    target: str | None = None,
    confirm: str | None = None,
    out: str | Path | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> Exploration:
    """Search for inputs on which models (files, or live Keras models) differ.

    `settings` are the fields of `outvote.explore.job.ExploreJob`: `iterations=50`, `step=5`,
    `tolerance=0.1`, `limits_of_range=(0, 1)`, ... With `out`, the reports are written there.
    """
    known = _known(config)
    searching = searching_target(target, known)
    with OwnedFolder() as folder:
        job = ExploreJob(
            models=_files(models, folder),
            data=_data(x),
            target=searching,
            constraint=constraint,
            confirm=confirming_target(confirm, searching, known),
            out=_folder(out),
            **_checked(settings, ExploreJob),
        )
        data, explored = explored_result(job)
    found = explored.found
    if found is None:
        none = np.zeros(0, int)
        return Exploration(data, _folder(out), [], none, none)
    labels = majority(labels_of(found, explored))
    return Exploration(data, _folder(out), found.inputs, found.seed, labels)


def measure_coverage(
    model: Any,
    x: Inputs,
    *,
    train: Inputs | None = None,
    target: str | None = None,
    out: str | Path | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> Result:
    """How much of a model the inputs exercise: `result.data["coverage"]`.

    `settings` are the fields of `CoverageJob`, such as `threshold=0.5`.
    """
    with OwnedFolder() as folder:
        job = CoverageJob(
            model=as_file(model, folder),
            data=_data(x),
            target=searching_target(target, _known(config)),
            train=None if train is None else _data(train),
            out=_folder(out),
            **_checked(settings, CoverageJob),
        )
        return Result(run_coverage(job), job.out)


def find_pollution(
    clean: Any,
    polluted: Any,
    x: Array,
    y: Array,
    *,
    target: str | None = None,
    out: str | Path | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> Result:
    """Training samples (x, y) whose labels were falsified: `result.data["suspects"]`."""
    with OwnedFolder() as folder:
        job = pollution_job(
            models=_files([clean, polluted], folder),
            data=_data(x, y),
            target=searching_target(target, _known(config)),
            out=_folder(out),
            **_checked(settings, ExploreJob),
        )
        return Result(run_pollution(job), job.out)


def _known(config: str | Path | None) -> Mapping[str, Target]:
    loaded = load_config(Path(config) if config else None)
    return known_targets(loaded)


def _files(models: Sequence[Any], folder: Path) -> tuple[Path, ...]:
    if isinstance(models, str | Path) or not isinstance(models, Sequence):
        raise UsageError(f"expected a list of models or of paths; received {type(models).__name__}")
    if not models:
        raise UsageError("models are held against each other; received an empty list")
    return tuple(as_file(model, folder, f"model{n}") for n, model in enumerate(models, 1))


def _data(x: Inputs, y: Array | None = None) -> dict[str, Array]:
    return as_arrays(x, y) or {}


def _folder(out: str | Path | None) -> Path | None:
    return Path(out) if out is not None else None


def _checked(settings: dict[str, Any], job: type[ExploreJob | CoverageJob]) -> dict[str, Any]:
    """Settings that the job has; a slip of the pen is told."""
    given = {"models", "model", "data", "target", "train", "confirm", "out"}
    known = [field.name for field in fields(job) if field.name not in given]
    for name in settings:
        if name not in known:
            raise UsageError(f"there is no setting {name!r}; there are {', '.join(sorted(known))}")
    return settings
