"""Asks the workers that explore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.target import Run, Target
from outvote.explore.job import Explored, ExploreJob
from outvote.run.pool import Pool, Request


def ask(
    pool: Pool,
    target: Target,
    action: str,
    arguments: Mapping[str, Any] | None = None,
    arrays: Sequence[Array] = (),
    steps: int = 0,
) -> Run:
    """The worker's answer; what it could not do is an error for the user."""
    request = Request("explore", {"action": action, **(arguments or {})}, arrays, steps)
    run = pool.ask(target.name, request)
    if not run.ok:
        refused = run.reply.get("type") == "refused"
        raise UsageError(
            run.message if refused else f"exploring failed in {run.target}: {run.message}"
        )
    return run


def open_explorer(pool: Pool, job: ExploreJob, explored: Explored, target: Target) -> Run:
    """Send the models to a worker; it answers with the layers that have neurons."""
    assert explored.data is not None
    arguments = {
        "models": [subject.model.to_json() for subject in explored.subjects],
        "sample": [pool.blobs.put(array) for array in explored.data.inputs],
        "kind": explored.kind,
        "skip": list(job.skip),
        "threshold": job.threshold,
        "batch": job.batch_size,
    }
    return ask(pool, target, "open", arguments)
