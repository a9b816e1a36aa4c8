"""What a runtime offers to the worker around it: it loads graphs and runs them, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from outvote.core.states import State
from outvote.dialects.onnx.workers.shared.assemble import Assembled


class Program(Protocol):
    """A graph that a runtime has loaded."""

    def run(self, feeds: Sequence[State]) -> Sequence[State | None]:
        """All outputs, in the graph's order, for inputs in the graph's order.

        None stands for a tensor that was to be shown, and that a transformation took away.
        """
        ...


class Runtime(Protocol):
    """A library that runs ONNX graphs."""

    libraries: tuple[str, ...]  # whose versions are told
    fixed: bool  # whether graphs are loaded with the sizes of what they are fed
    free: bool  # whether single nodes are loaded without any sizes

    @property
    def divides(self) -> bool:
        """Whether its process can be divided now: it has no threads of its own."""
        ...

    def precision(self) -> Mapping[str, Any]: ...

    def load(self, graph: Assembled) -> Program: ...

    def is_gap(self, error: Exception) -> bool:
        """Whether an error says, in the library's own words, that something is not offered."""
        ...
