"""Tensors with their masks and types, as they travel between the driver and a worker."""

from __future__ import annotations

from dataclasses import dataclass

from outvote.core.arrays import TEXT, Array
from outvote.core.instances import taken
from outvote.core.model import Input


@dataclass(frozen=True)
class State:
    """A tensor and its mask.

    NumPy has no bfloat16: the driver holds such numbers as float32, and `dtype` says what they
    are, so that another target is given bfloat16 again.
    """

    array: Array
    mask: Array | None = None
    dtype: str = ""  # that of the array, unless it is told
    batch: int | None = 0  # the axis of the instances; None: all share the tensor

    def __post_init__(self) -> None:
        if not self.dtype:
            is_text = self.array.dtype.kind == "U"
            object.__setattr__(self, "dtype", TEXT if is_text else self.array.dtype.name)

    @staticmethod
    def fed(array: Array, item: Input) -> State:
        """What an input is fed with, of the type that it says it is."""
        widened = item.dtype == "bfloat16" and array.dtype.name == "float32"
        return State(array, dtype=item.dtype if widened else "", batch=item.batch)

    def bare(self) -> State:
        """The tensor without its mask."""
        return State(self.array, None, self.dtype, self.batch)

    def first(self) -> State:
        """The first instance alone."""
        mask = None if self.mask is None else self.mask[:1]
        return State(taken(self.array, self.batch, [0]), mask, self.dtype, self.batch)

    def but(self, array: Array) -> State:
        """Other numbers of the same type, under the same mask."""
        return State(array, self.mask, self.dtype, self.batch)
