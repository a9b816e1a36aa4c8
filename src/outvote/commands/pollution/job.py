"""What `pollution` is asked to do, as an exploration; and what it knows of the two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outvote.core.arrays import Array
from outvote.explore.job import ExploreJob

SEEDS = 2000


def pollution_job(count: int | None = None, **settings: Any) -> ExploreJob:
    """An exploration from a part of the training data, which are the job's data, with labels."""
    return ExploreJob(count=count or SEEDS, **settings)


@dataclass(frozen=True)
class Evidence:
    """Inputs that the clean model takes for `true` and the polluted one for `false`."""

    true: int
    false: int
    inputs: Array
    genuine: Array  # seeds that the clean model takes for `false`
    moved: float  # mean confidence that moved from the true class to the false one
