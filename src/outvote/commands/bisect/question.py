"""What every release is asked: a run of the case, or a few steps of training on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from outvote.bench.lesson_case import lesson_case
from outvote.bench.noise import Ask, Seed, asking, nudged
from outvote.core.blobs import BlobStore
from outvote.core.case import Case, balanced_batch
from outvote.core.errors import UsageError
from outvote.core.exercises import Drill
from outvote.core.lesson import Lesson
from outvote.core.outputs import Outputs
from outvote.core.protocol import Request, RunModel
from outvote.core.target import Run
from outvote.run.pool import Pool
from outvote.run.settle import ask_each_settled, ask_settled

_BATCH = 32


class ReleaseQuestion(Protocol):
    """A request, what of its answer is compared, and how its noise is measured."""

    def request(self, blobs: BlobStore) -> Request[Any]: ...

    def outputs(self, run: Run) -> Outputs: ...

    def asking(self, pool: Pool, name: str) -> Ask: ...


@dataclass(frozen=True)
class CaseQuestion:
    """What the model gives."""

    case: Case

    def request(self, blobs: BlobStore) -> RunModel:
        data = self.case.data
        return RunModel(
            model=self.case.model,
            inputs=tuple(blobs.put(array) for array in data.inputs),
            batch=balanced_batch(data.count, _BATCH),
            steps=len(self.case.model.layers),
        )

    def outputs(self, run: Run) -> Outputs:
        found: Outputs = run.reply.outputs
        return found

    def asking(self, pool: Pool, name: str) -> Ask:
        return asking(pool, self.case.model, self.case.data.inputs, [name])


@dataclass(frozen=True)
class StepsQuestion:
    """Losses, and all weights after each step of training."""

    drill: Drill

    def request(self, blobs: BlobStore) -> Request[Any]:
        return self.drill.request(blobs)

    def outputs(self, run: Run) -> Outputs:
        return self.drill.told("steps", run.reply).outputs

    def asking(self, pool: Pool, name: str) -> Ask:
        def moved(seed: Seed) -> Request[Any]:
            return self.drill.changed(lambda array: nudged(array, seed)).request(pool.blobs)

        def ask(seeds: Sequence[Seed]) -> list[dict[str, Outputs]]:
            answers = ask_each_settled(pool, [name], [moved(seed) for seed in seeds])
            return [{n: self.outputs(run) for n, run in runs.items() if run.ok} for runs in answers]

        return ask


def steps_question(pool: Pool, case: Case, lesson: Lesson, seed: int) -> StepsQuestion:
    """The lesson as the first target of the pool that trains prepares it."""
    able = [name for name, target in pool.targets.items() if target.can("pullback")]
    if not able:
        raise UsageError("--train needs a target that trains to compare with; name one: --against")
    run = ask_settled(pool, able[0], CaseQuestion(case).request(pool.blobs))
    if not run.ok:
        raise UsageError(f"--train: {able[0]} cannot run the model: {run.message}")
    return StepsQuestion(
        lesson_case(pool, case, lesson, able[0], run.reply.outputs, _BATCH, seed).drill
    )
