"""What a mode of PyTorch must do for training, beside loading a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, runtime_checkable

from outvote.dialects.torch_export.workers.shared.engine import GraphCompiler, Program


@runtime_checkable
class Mode(Protocol):
    """A compiler of graphs that differentiates what it makes of them, too."""

    def load(self, module: Any, examples: Sequence[Any]) -> Program: ...

    def backward(self) -> AbstractContextManager[Any]:
        """What is in force while autograd walks back."""
        ...

    def updating(self, step: Callable[[], Any]) -> Callable[[], Any]:
        """The step of an optimiser, as the mode takes it."""
        ...


class Plain:
    """PyTorch as it is."""

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        found: Program = module
        return found

    def backward(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def updating(self, step: Callable[[], Any]) -> Callable[[], Any]:
        return step


def mode_of(runtime: GraphCompiler | None) -> Mode:
    if runtime is None:
        return Plain()
    if not isinstance(runtime, Mode):
        raise NotImplementedError("this mode gives no gradients")
    return runtime
