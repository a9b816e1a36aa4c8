"""PyTorch itself, in the mode that the target names: by calls, decomposed, compiled, on a GPU."""

from __future__ import annotations

import importlib
from pathlib import Path

from outvote.dialects.torch_export.workers.shared.engine import GraphCompiler
from outvote.dialects.torch_export.workers.shared.gpu import OnGpu
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context


def create(context: Context) -> TorchWorker:
    mode, _, device = context.settings.mode.partition(":")
    runtime = None if mode == "eager" else _compiler(mode, context.folder)
    return TorchWorker(context, OnGpu(device, runtime) if device else runtime)


def _compiler(mode: str, folder: Path) -> GraphCompiler:
    module = importlib.import_module(f"outvote.dialects.torch_export.workers.modes.{mode}")
    found: GraphCompiler = module.create(folder)
    return found
