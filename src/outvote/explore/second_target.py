"""Every find is run once more, on another target: what splits the models there too is kept.

An input can split models because of the rounding of one implementation. Who runs the saved file
elsewhere would then see nothing. So a second target answers to the same arrays as the file holds.
"""

from __future__ import annotations

from outvote.core.errors import UsageError
from outvote.core.explore_protocol import AskModels
from outvote.explore.expedition import Expedition
from outvote.explore.job import Differences, ExploreJob


def require_another(job: ExploreJob) -> None:
    """A target cannot confirm itself."""
    if job.confirm is not None and job.confirm.name == job.target.name:
        raise UsageError(
            f"--confirm {job.confirm.name} is the target that searches; name another, or none"
        )


def open_confirmer(trip: Expedition) -> None:
    """Send the models to the second target."""
    if trip.job.confirm is not None:
        trip.open(trip.job.confirm)


def confirmed(trip: Expedition, new: Differences) -> list[int]:
    """Rows of the finds that split the models on the second target too; without one, all."""
    second = trip.job.confirm
    if second is None or not new.count:
        return list(range(new.count))
    answers = trip.ask(AskModels(inputs=tuple(new.inputs)), second).reply.answers
    rows = [int(row) for row in trip.explored.oracle.differ(answers).nonzero()[0]]
    trip.explored.unconfirmed += new.count - len(rows)
    return rows
