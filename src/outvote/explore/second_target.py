"""Every find is run once more, on another target: what splits the models there too is kept.

An input can split models because of the rounding of one implementation. Who runs the saved file
elsewhere would then see nothing. So a second target answers to the same arrays as the file holds.
"""

from __future__ import annotations

from outvote.core.errors import UsageError
from outvote.core.protocol import AskModels
from outvote.explore.asking import ask, open_explorer
from outvote.explore.job import Differences, Explored, ExploreJob
from outvote.run.pool import Pool


def require_another(job: ExploreJob) -> None:
    """A target cannot confirm itself."""
    if job.confirm is not None and job.confirm.name == job.target.name:
        raise UsageError(
            f"--confirm {job.confirm.name} is the target that searches; name another, or none"
        )


def open_confirmer(pool: Pool, job: ExploreJob, explored: Explored) -> None:
    """Send the models to the second target."""
    if job.confirm is not None:
        open_explorer(pool, job, explored, job.confirm)


def confirmed(pool: Pool, job: ExploreJob, explored: Explored, new: Differences) -> list[int]:
    """Rows of the finds that split the models on the second target too; without one, all."""
    if job.confirm is None or not new.count:
        return list(range(new.count))
    answers = ask(pool, job.confirm, AskModels(inputs=tuple(new.inputs))).reply.answers
    rows = [int(row) for row in explored.oracle.differ(answers).nonzero()[0]]
    explored.unconfirmed += new.count - len(rows)
    return rows
