"""PyTorch itself, in the mode that the target names: call by call, decomposed or compiled."""

from __future__ import annotations

import importlib

from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context


def create(context: Context) -> TorchWorker:
    mode = context.settings.mode
    if mode == "eager":
        return TorchWorker(context)
    module = importlib.import_module(f"outvote.dialects.torch_export.workers.modes.{mode}")
    return TorchWorker(context, module.create(context.folder))
