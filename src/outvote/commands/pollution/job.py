"""What `pollution` is asked to do, as an exploration; and what it knows of the two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outvote.core.arrays import Array
from outvote.explore.job import ExploreJob

SEEDS = 2000
STEP = 3.0  # of 255: inputs stay close to the training data


def pollution_job(count: int | None = None, **settings: Any) -> ExploreJob:
    """An exploration from a part of the training data, which are the job's data, with labels."""
    usual = {"constraint": "none", "step": STEP}
    return ExploreJob(count=count or SEEDS, **{**usual, **settings})


@dataclass(frozen=True)
class Evidence:
    """Inputs that the clean model takes for `true` and the polluted one for `false`."""

    true: int
    false: int
    inputs: Array
    genuine: Array  # seeds that the clean model takes for `false`
    moved: float  # mean confidence that moved from the true class to the false one
