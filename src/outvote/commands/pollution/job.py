"""What `pollution` knows of the two models; what it is asked to do is an ExploreJob."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.arrays import Array


@dataclass(frozen=True)
class Evidence:
    """Inputs that the clean model takes for `true` and the polluted one for `false`."""

    true: int
    false: int
    inputs: Array
    genuine: Array  # seeds that the clean model takes for `false`
    moved: float  # mean confidence that moved from the true class to the false one
