"""What a lesson is given on: the model as training calls it, a batch, and what it should give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import Case
from outvote.core.cuts import ended_at
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.exercises import Drill
from outvote.core.lesson import Lesson
from outvote.core.model import Model
from outvote.core.train_protocol import Named, PrepareTraining
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
    pool: Pool, case: Case, lesson: Lesson, name: str, output: Array, most: int, seed: int
) -> LessonCase:
    """Of the first inputs of a case, at `most` so many; `output` is what one target gives."""
    wing = dialect(case.model.dialect).lesson
    model, told = _prepared(pool, case.model, name)
    count = min(case.data.count, most)
    output = output[:count]
    if not count or output.dtype.kind != "f":
        raise UsageError(
            f"--train needs a batch and an output of floats to differentiate; received {count} "
            f"inputs and an output of {output.dtype}"
        )
    labels = None if case.truth.labels is None else case.truth.labels[:count]
    given = None if case.truth.given is None else case.truth.given[:count]
    loss = lesson.loss or wing.loss_for(output, labels)
    truth = wing.truth_for(loss, output, labels, given, np.random.default_rng(seed))
    kept = set(ended_at(case.model, case.model.outputs[0]).inputs)
    pairs = zip(case.model.inputs, case.data.take(range(count)), strict=True)
    inputs = tuple(array for item, array in pairs if item in kept)
    return LessonCase(lesson, loss, model, inputs, truth, tuple(told))


def _prepared(pool: Pool, model: Model, name: str) -> tuple[Model, list[str]]:
    """The model as training calls it, and what to say of it; random numbers are not compared."""
    told = []
    if len(model.outputs) > 1:
        told.append(f"--train: the loss reads the first of {len(model.outputs)} outputs alone")
    run = ask_settled(pool, name, PrepareTraining(model=ended_at(model, model.outputs[0])))
    if not run.ok:
        raise UsageError(f"--train: {name} cannot prepare the model: {run.message}")
    if run.reply.drawing:
        raise UsageError(
            f"--train: layer {run.reply.drawing[0]!r} draws random numbers in training, which "
            "cannot be the same on all targets; take it out of the model"
        )
    if run.reply.stilled:
        told.append(
            f"--train: {', '.join(run.reply.stilled)} would drop or disturb numbers at random; "
            "they are compared with a probability of 0"
        )
    return run.reply.model, told
