"""`torch.compile` with a backend; everything it makes stays in the worker's own folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from outvote.dialects.torch_export.workers.shared.engine import Program

_GAPS = re.compile(
    r"InvalidCxxCompiler|No working C\+\+ compiler|Unsupported|NotImplementedError"
    r"|Python\.h(: No such file|' file not found)"  # a machine without Python's headers
)


class Compiled:
    """One compilation for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ()
    precision: Mapping[str, Any] = {}

    def __init__(self, backend: str, folder: Path, dynamic: bool = False) -> None:
        self._backend, self._dynamic = backend, dynamic
        # What another process compiled may come from another PyTorch, or a patched one.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        torch._dynamo.reset()
        how = {"backend": self._backend, "dynamic": self._dynamic}
        found: Program = torch.compile(module, fullgraph=True, **how)
        return found

    def regions(self, module: Any, examples: Sequence[Any]) -> list[tuple[str, ...]]:
        """What it computes in one loop; only Inductor fuses."""
        if self._backend != "inductor":
            return []
        from outvote.dialects.torch_export.workers.shared.fused import regions_between

        return regions_between(module, examples, self.load)

    def backward(self) -> AbstractContextManager[None]:
        """Nothing: what is compiled knows its way back."""
        return nullcontext()

    def updating(self, step: Callable[[], Any]) -> Callable[[], Any]:
        torch._dynamo.reset()
        found: Callable[[], Any] = torch.compile(step, backend=self._backend, dynamic=self._dynamic)
        return found

    def is_gap(self, error: Exception) -> bool:
        return is_gap_of_compiler(error)


def is_gap_of_compiler(error: Exception) -> bool:
    """Whether a C++ compiler or its headers are missing, or something is not supported."""
    return bool(_GAPS.search(f"{type(error).__name__}: {error}"))
