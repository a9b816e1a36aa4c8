"""A search on its way: who computes, what is wanted, and what is known so far."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.case import Data
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import ExplorerOpened, OpenExplorer
from outvote.core.protocol import R, Request
from outvote.core.target import Run, Target
from outvote.explore.job import Explored, ExploreJob
from outvote.run.pool import Pool


def ask(pool: Pool, target: Target, request: Request[R]) -> Run[R]:
    """The worker's answer; what it could not do is an error for the user."""
    run = pool.ask(target.name, request)
    if not run.ok:
        failed = f"exploring failed in {run.target}: {run.message}"
        raise UsageError(run.message if run.refused else failed)
    return run


@dataclass(frozen=True)
class Expedition:
    """The pool, the job and its findings so far, which every stage of a search needs together."""

    pool: Pool
    job: ExploreJob
    explored: Explored

    @property
    def data(self) -> Data:
        """The seeds; read before any stage that asks for them."""
        assert self.explored.data is not None
        return self.explored.data

    def ask(self, request: Request[R], target: Target | None = None) -> Run[R]:
        """The answer of the target that searches, or of another."""
        return ask(self.pool, target or self.job.target, request)

    def open(self, target: Target) -> ExplorerOpened:
        """Send the models to a worker; it answers with the layers that have neurons."""
        request = OpenExplorer(
            models=tuple(subject.model for subject in self.explored.subjects),
            sample=tuple(self.pool.blobs.put(array) for array in self.data.inputs),
            kind=self.explored.kind,
            skip=self.job.skip,
            threshold=self.job.threshold,
            batch=self.job.batch_size,
        )
        return self.ask(request, target).reply
