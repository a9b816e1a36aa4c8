"""Tensors with their masks and types, as they travel between the driver and a worker."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.arrays import Array


@dataclass(frozen=True)
class State:
    """A tensor and its mask.

    NumPy has no bfloat16: the driver holds such numbers as float32, and `dtype` says what they
    are, so that another target is given bfloat16 again.
    """

    array: Array
    mask: Array | None = None
    dtype: str = ""  # that of the array, unless it is told

    def __post_init__(self) -> None:
        if not self.dtype:
            object.__setattr__(self, "dtype", self.array.dtype.name)

    @staticmethod
    def fed(array: Array, dtype: str) -> State:
        """What an input is fed with that says it is of that type."""
        widened = dtype == "bfloat16" and array.dtype.name == "float32"
        return State(array, dtype=dtype if widened else "")

    def but(self, array: Array) -> State:
        """Other numbers of the same type, under the same mask."""
        return State(array, self.mask, self.dtype)
