"""As decomposed, traced with every size as a variable: what was decided by sizes is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from outvote.dialects.torch_export.workers.shared.engine import Program

_READS_NUMBERS = "trying to get value out of a tracing tensor"


def create(folder: Path) -> Symbolic:
    return Symbolic()


class Symbolic:
    """Traces a graph through PyTorch's own decompositions."""

    libraries: tuple[str, ...] = ()
    precision: Mapping[str, Any] = {}

    @cached_property
    def _table(self) -> Any:
        return core_aten_decompositions()

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        trace = make_fx(
            module,
            decomposition_table=self._table,
            tracing_mode="symbolic",
            _allow_non_fake_inputs=True,  # constants stay as they are
        )
        found: Program = trace(*examples)
        return found

    def is_gap(self, error: Exception) -> bool:
        """What reads numbers of a tensor to decide what to do cannot be traced."""
        return _READS_NUMBERS in str(error)
