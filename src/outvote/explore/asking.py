"""Asks the workers that explore."""

from __future__ import annotations

from outvote.core.errors import UsageError
from outvote.core.protocol import ExplorerOpened, OpenExplorer, R, Request
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


def open_explorer(
    pool: Pool, job: ExploreJob, explored: Explored, target: Target
) -> ExplorerOpened:
    """Send the models to a worker; it answers with the layers that have neurons."""
    assert explored.data is not None
    request = OpenExplorer(
        models=tuple(subject.model for subject in explored.subjects),
        sample=tuple(pool.blobs.put(array) for array in explored.data.inputs),
        kind=explored.kind,
        skip=job.skip,
        threshold=job.threshold,
        batch=job.batch_size,
    )
    return ask(pool, target, request).reply
