"""Reads the models under test and makes sure that they can be held against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outvote.bench.reader import read_model
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.explore.job import ExploreJob, ModelUnderTest
from outvote.run.pool import Pool

Shape = Sequence[int | None]


def read_subjects(pool: Pool, paths: Sequence[Path]) -> list[ModelUnderTest]:
    """All models, named by their files; equal names are told apart by their folders."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.parent.name}/{path.stem}" for path in paths]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    subjects = []
    for name, path in zip(names, paths, strict=True):
        model, shapes = read_model(pool, path, None)
        subjects.append(ModelUnderTest(name, path, model, shapes[0]))
    return subjects


def require_comparable(subjects: Sequence[ModelUnderTest]) -> None:
    """The same inputs and answers of the same width; inputs that have a gradient."""
    first = subjects[0]
    for item in first.model.inputs:
        if "float" not in item.dtype:
            raise UsageError(
                f"input {item.name!r} of {first.path.name} takes {item.dtype}: there is no "
                "gradient to follow to other integers; cut the model behind its embedding"
            )
    for other in subjects[1:]:
        if _input_shapes(other.model) != _input_shapes(first.model):
            raise UsageError(
                f"the models take different inputs: {first.path.name} takes "
                f"{_told(_input_shapes(first.model))}, {other.path.name} takes "
                f"{_told(_input_shapes(other.model))}; give models for the same data"
            )
        if len(other.output_shape) != 2 or other.output_shape[-1] != first.output_shape[-1]:
            raise UsageError(
                f"the models answer in different forms: {first.path.name} gives "
                f"{_told([first.output_shape])}, {other.path.name} gives "
                f"{_told([other.output_shape])}; give models with the same classes"
            )


def kind_of_answers(job: ExploreJob, subjects: Sequence[ModelUnderTest]) -> str:
    """Classes where there are several outputs or a sigmoid; otherwise values (regression)."""
    kind = job.answers
    if kind is None:
        single = subjects[0].output_shape[-1] == 1
        sigmoid = all(
            dialect(subject.model.dialect).layers.is_classifier(subject.model)
            for subject in subjects
        )
        kind = "values" if single and not sigmoid else "classes"
    if kind == "values" and job.tolerance is None and not job.edges:
        raise UsageError(
            "the models give values, not classes: say from where on two of them differ, with "
            "--tolerance T (apart by more than T) or --bins E1,E2,... (not in the same bin)"
        )
    if kind == "classes" and (job.tolerance is not None or job.edges):
        raise UsageError(
            "--tolerance and --bins are for models that give values, but these give classes; "
            "leave them out, or add --answers values"
        )
    return kind


def _input_shapes(model: Model) -> list[Shape]:
    return [item.shape for item in model.inputs]


def _told(shapes: Sequence[Shape]) -> str:
    return " and ".join(
        "(" + ", ".join("any" if n is None else str(n) for n in shape[1:]) + ")" for shape in shapes
    )
