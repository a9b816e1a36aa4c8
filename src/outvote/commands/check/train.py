"""`check --train`: the same weights and the same batch, one stage of training after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.bench.bench import Bench
from outvote.commands.check.checked import Checked
from outvote.core.cuts import ended_at
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.core.model import Model
from outvote.core.target import Target
from outvote.core.train_protocol import PrepareTraining
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.triage.lesson import Learnt, LessonCheck


def lesson_check(pool: Pool, checked: Checked, lesson: Lesson) -> LessonCheck:
    """The lesson on the targets that can and that have run the model."""
    targets = {t.name: t for t in checked.job.targets if t.name in checked.outputs}
    able = [name for name, target in targets.items() if target.can("pullback")]
    if len(able) < 2:
        raise UsageError(
            f"--train needs two targets that give gradients; received {', '.join(able) or 'none'} "
            f"of {', '.join(targets)}, name more with --targets"
        )
    wing = dialect(checked.case.model.dialect).lesson
    model, told = _prepared(pool, checked.case.model, able[0])
    count = min(checked.case.data.count, checked.job.batch_size)
    output = checked.outputs[able[0]].arrays[0][:count]
    if not count or output.dtype.kind != "f":
        raise UsageError(
            f"--train needs a batch and an output of floats to differentiate; received {count} "
            f"inputs and an output of {output.dtype}"
        )
    case = checked.case
    labels = None if case.truth.labels is None else case.truth.labels[:count]
    given = None if case.truth.given is None else case.truth.given[:count]
    loss = lesson.loss or wing.loss_for(output, labels)
    rng = np.random.default_rng(checked.job.seed)
    truth = wing.truth_for(loss, output, labels, given, rng)
    kept = set(ended_at(case.model, case.model.outputs[0]).inputs)
    inputs = tuple(
        array
        for item, array in zip(case.model.inputs, case.data.take(range(count)), strict=True)
        if item in kept
    )
    trained = Learnt(lesson, loss, tuple(able), warnings=[*told, *_left_out(targets, able)])
    bench = Bench(pool, {name: targets[name] for name in able}, checked.job.settings)
    job = checked.job
    return LessonCheck(bench, model, inputs, truth, trained, job.every_layer, job.minimise > 0)


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


def _left_out(targets: dict[str, Target], able: Sequence[str]) -> list[str]:
    unable = [name for name in targets if name not in able]
    return [f"--train: {', '.join(unable)} gives no gradients, and is left out"] if unable else []
