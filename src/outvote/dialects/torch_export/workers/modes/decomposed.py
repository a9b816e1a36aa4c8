"""Every operator taken apart into those of core ATen, which ATen then computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from torch._decomp import core_aten_decompositions
from torch.utils._python_dispatch import TorchDispatchMode

from outvote.dialects.torch_export.workers.shared.engine import Program


def create(folder: Path) -> Decomposed:
    return Decomposed()


class Decomposed:
    """Runs a graph through PyTorch's own decompositions, as they are met.

    Tracing it first gives the same numbers, and takes many times as long as running it once.
    """

    libraries: tuple[str, ...] = ()
    precision: Mapping[str, Any] = {}

    @cached_property
    def table(self) -> dict[Any, Callable[..., Any]]:
        table = core_aten_decompositions()
        return {operator: table[operator] for operator in table}  # its own `get` finds nothing

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        def run(*tensors: Any) -> Sequence[Any]:
            with _TakenApart(self.table):
                found: Sequence[Any] = module(*tensors)
                return found

        return run

    def backward(self) -> TorchDispatchMode:
        """What autograd calls is taken apart, too."""
        return _TakenApart(self.table)

    def updating(self, step: Callable[[], Any]) -> Callable[[], Any]:
        def update() -> None:
            with _TakenApart(self.table):
                step()

        return update

    def is_gap(self, error: Exception) -> bool:
        return False


class _TakenApart(TorchDispatchMode):
    """Calls the decomposition of an operator in its place; what that calls is taken apart too."""

    def __init__(self, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._table = table

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        apart = self._table.get(func)
        if apart is not None:
            with self:
                found = apart(*args, **(kwargs or {}))
            if found is not NotImplemented:
                return found
        return func(*args, **(kwargs or {}))
