"""What a target gave for a model or a layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from outvote.core.arrays import Array, as_numbers
from outvote.core.errors import ProtocolError
from outvote.core.instances import by_instance, taken
from outvote.core.states import State


@dataclass(frozen=True)
class Outputs:
    """What one target gave for all inputs: arrays and the dtypes it said they have.

    They are there to be compared: texts are numbers that tell them apart.
    """

    arrays: tuple[Array, ...]
    dtypes: tuple[str, ...]
    batch: tuple[int | None, ...] = ()  # the axis of the instances of each; none told: the first

    def __post_init__(self) -> None:
        told = {len(self.arrays), len(self.dtypes), len(self.batch or self.arrays)}
        if len(told) > 1:
            raise ProtocolError(
                f"{len(self.arrays)} outputs come with {len(self.dtypes)} types "
                f"and {len(self.batch)} batch axes"
            )
        if any(array.dtype.kind == "U" for array in self.arrays):
            object.__setattr__(self, "arrays", tuple(map(as_numbers, self.arrays)))

    @staticmethod
    def of(states: Iterable[State]) -> Outputs:
        """What a layer gave, without masks."""
        found = tuple(states)
        return Outputs(
            tuple(state.array for state in found),
            tuple(state.dtype for state in found),
            tuple(state.batch for state in found),
        )

    @property
    def axes(self) -> tuple[int | None, ...]:
        """The axis of the instances of each."""
        return self.batch or (0,) * len(self.arrays)

    def instances(self, rows: Sequence[int]) -> Outputs:
        """The outputs for some of the inputs."""
        pairs = zip(self.arrays, self.axes, strict=True)
        return replace(self, arrays=tuple(taken(array, axis, rows) for array, axis in pairs))

    @property
    def rows(self) -> tuple[Array, ...]:
        """The arrays with one instance per row; what has no batch is one row."""
        return tuple(map(by_instance, self.arrays, self.axes))
