"""What a lesson is given on: the model as training calls it, a batch, and what it should give."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import Case
from outvote.core.cuts import ended_at
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.exercises import Drill
from outvote.core.instances import taken
from outvote.core.lesson import Lesson
from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.core.train_protocol import Named, PrepareTraining, TrainingPrepared
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled


@dataclass(frozen=True)
class LessonCase:
    """The same for every target; nothing in it is drawn at random any more."""

    lesson: Lesson
    loss: Named
    model: Model
    inputs: tuple[Array, ...]
    truth: Array
    warnings: tuple[str, ...] = ()

    @property
    def drill(self) -> Drill:
        """All steps of the lesson, as a library takes them by itself."""
        given = self.model, self.inputs, self.truth, self.loss
        return Drill(*given, self.lesson.optimizer, self.lesson.steps)


def lesson_case(
    pool: Pool, case: Case, lesson: Lesson, name: str, outputs: Outputs, most: int, seed: int
) -> LessonCase:
    """Of the first inputs of a case, at `most` so many; `outputs` are what one target gives."""
    wing = dialect(case.model.dialect).lesson
    model, told = _prepared(pool, case.model, name)
    count = min(case.data.count, most, *_fixed(case.model))
    axis = outputs.axes[0]
    output = taken(outputs.arrays[0], axis, range(count))
    if not count or output.dtype.kind != "f":
        raise UsageError(
            f"--train needs a batch and an output of floats to differentiate; received {count} "
            f"inputs and an output of {output.dtype}"
        )
    labels, given = (_of_batch(y, axis, count) for y in (case.truth.labels, case.truth.given))
    loss = lesson.loss or wing.loss_for(output, labels)
    truth = wing.truth_for(loss, output, labels, given, np.random.default_rng(seed))
    kept = set(ended_at(case.model, case.model.outputs[0]).inputs)
    pairs = zip(case.model.inputs, case.data.take(range(count)), strict=True)
    inputs = tuple(array for item, array in pairs if item in kept)
    return LessonCase(lesson, loss, model, inputs, truth, tuple(told))


def _fixed(model: Model) -> list[int]:
    """The sizes of batches, of inputs that take no others."""
    sizes = (item.shape[item.batch] for item in model.inputs if item.batch is not None)
    return [size for size in sizes if size is not None]


def _of_batch(truth: Array | None, axis: int | None, count: int) -> Array | None:
    """Of an output without instances, the truth is that of one."""
    if truth is None:
        return None
    return truth[0] if axis is None else truth[:count]


def as_written(pool: Pool, case: Case, name: str) -> tuple[Case, list[str]]:
    """A case whose model is what training calls, and what to say of it; most are told to train."""
    if not dialect(case.model.dialect).lesson.AS_WRITTEN:
        return case, []
    prepared = _stilled(pool, case.model, name)
    return replace(case, model=prepared.model), _told_of(prepared)


def _prepared(pool: Pool, model: Model, name: str) -> tuple[Model, list[str]]:
    """The model as training calls it, and what to say of it; random numbers are not compared."""
    told = []
    if len(model.outputs) > 1:
        told.append(f"--train: the loss reads the first of {len(model.outputs)} outputs alone")
    prepared = _stilled(pool, ended_at(model, model.outputs[0]), name)
    return prepared.model, told + _told_of(prepared)


def _stilled(pool: Pool, model: Model, name: str) -> TrainingPrepared:
    run = ask_settled(pool, name, PrepareTraining(model=model))
    if not run.ok:
        raise UsageError(f"--train: {name} cannot prepare the model: {run.message}")
    if run.reply.drawing:
        raise UsageError(
            f"--train: layer {run.reply.drawing[0]!r} draws random numbers in training, which "
            "cannot be the same on all targets; take it out of the model"
        )
    return run.reply


def _told_of(prepared: TrainingPrepared) -> list[str]:
    if not prepared.stilled:
        return []
    return [
        f"--train: {', '.join(prepared.stilled)} would drop or disturb numbers at random; "
        "they are compared with a probability of 0"
    ]
