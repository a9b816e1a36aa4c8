"""A program that a tool has transformed, which ATen then computes.

The transformation stands in `twins`. Whatever program is run, whole, cut off or a call alone, is
transformed first; so localisation and minimiser show what the tool does.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from outvote.dialects.torch_export.nouns.twins import FILES, PRECISION
from outvote.dialects.torch_export.workers.shared.engine import Program
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context


def create(context: Context) -> TorchWorker:
    return TorchWorker(context, Transformed(context.settings.mode))


class Transformed:
    """One transformation for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self._name = name
        self.precision: Mapping[str, Any] = {"inference": PRECISION[name]}
        self._module = importlib.import_module(f"{__package__}.twins.{FILES[name]}")

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        found: Program = self._module.transformed(self._name, module, examples)
        return found

    def is_gap(self, error: Exception) -> bool:
        return False
