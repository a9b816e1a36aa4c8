"""`torch.jit.trace`: TorchScript, whose interpreter fuses what it can."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from outvote.dialects.torch_export.workers.shared.engine import Program


def create(folder: Path) -> Traced:
    return Traced()


class Traced:
    """One trace for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ()
    precision: Mapping[str, Any] = {}

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that TorchScript is on its way out
            found: Program = torch.jit.trace(module, tuple(examples), check_trace=False)
        return found

    def is_gap(self, error: Exception) -> bool:
        return False
