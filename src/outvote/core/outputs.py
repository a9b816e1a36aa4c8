"""What a target gave for a model or a layer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from outvote.core.arrays import Array
from outvote.core.states import State


@dataclass(frozen=True)
class Outputs:
    """What one target gave for all inputs: arrays and the dtypes it said they have."""

    arrays: tuple[Array, ...]
    dtypes: tuple[str, ...]

    @staticmethod
    def of(states: Iterable[State]) -> Outputs:
        """What a layer gave, without masks."""
        found = tuple(states)
        return Outputs(tuple(s.array for s in found), tuple(s.dtype for s in found))
