"""LiteRT, by its converter of PyTorch modules: XNNPACK's kernels, and its own where it has none."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import litert_torch
import torch

from outvote.dialects.torch_export.workers.shared.engine import Program
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context

_GAPS = re.compile(r"Lowering not found|failed to legalize|NotImplemented|[Nn]ot supported")


def create(context: Context) -> TorchWorker:
    return TorchWorker(context, ConvertedToLiteRt())


class ConvertedToLiteRt:
    """One program for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ("litert-torch", "ai-edge-litert")
    precision: Mapping[str, Any] = {}

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter, about its own parts
            # Without it, integers of 64 bits are made narrower.
            model = litert_torch.convert(module, tuple(examples), enable_x64=True)

        def run(*tensors: Any) -> Sequence[Any]:
            found = model(*(tensor.numpy() for tensor in tensors))
            parts = found if isinstance(found, list | tuple) else [found]
            return [torch.from_numpy(part.copy()) for part in parts]

        return run

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(f"{type(error).__name__}: {error}"))
