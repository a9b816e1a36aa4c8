"""`check --train`: the same weights and the same batch, one stage of training after the other."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.bench.bench import Bench
from outvote.bench.lesson_case import as_written, lesson_case
from outvote.commands.check.checked import Checked
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.core.target import Target
from outvote.run.pool import Pool
from outvote.triage.lesson import Learnt, LessonCheck


def lesson_check(pool: Pool, checked: Checked, lesson: Lesson) -> LessonCheck:
    """The lesson on the targets that can and that have run the model."""
    job = checked.job
    targets = {t.name: t for t in job.targets if t.name in checked.outputs}
    able = [name for name, target in targets.items() if target.can("pullback")]
    if len(able) < 2:
        raise UsageError(
            f"--train needs two targets that give gradients; received {', '.join(able) or 'none'} "
            f"of {', '.join(targets)}, name more with --targets"
        )
    outputs = checked.outputs[able[0]]
    case = lesson_case(pool, checked.case, lesson, able[0], outputs, job.batch_size, job.seed)
    warnings = [*case.warnings, *_left_out(targets, able)]
    trained = Learnt(lesson, case.loss, tuple(able), warnings=warnings)
    bench = Bench(pool, {name: targets[name] for name in able}, job.settings)
    return LessonCheck(bench, case, trained, job.every_layer, job.minimise > 0)


def as_trained(pool: Pool, checked: Checked) -> None:
    """Where a model says itself how it trains, all of the check is of that."""
    able = [t.name for t in checked.job.targets if t.can("pullback") and checked.hellos[t.name].ok]
    if able:
        checked.case, told = as_written(pool, checked.case, able[0])
        checked.warnings += told


def _left_out(targets: dict[str, Target], able: Sequence[str]) -> list[str]:
    unable = [name for name in targets if name not in able]
    return [f"--train: {', '.join(unable)} gives no gradients, and is left out"] if unable else []
