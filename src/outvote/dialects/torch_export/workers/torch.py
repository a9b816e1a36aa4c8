"""PyTorch itself, in the mode that the target names: call by call, decomposed or compiled."""

from __future__ import annotations

import importlib

import torch

from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context, Refused

_CUDA = "cuda"


def create(context: Context) -> TorchWorker:
    mode = context.settings.mode
    if mode == "eager":
        return TorchWorker(context)
    if mode.startswith(_CUDA):
        return on_cuda(context, narrow=mode != _CUDA)
    module = importlib.import_module(f"outvote.dialects.torch_export.workers.modes.{mode}")
    return TorchWorker(context, module.create(context.folder))


def on_cuda(context: Context, narrow: bool) -> TorchWorker:
    """PyTorch's kernels on a GPU; products of matrices in TF32 if they may be narrow."""
    if not torch.cuda.is_available():
        raise Refused("PyTorch sees no CUDA device on this machine")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = narrow
    precision = {
        "device": torch.cuda.get_device_name(),
        "matmul": torch.get_float32_matmul_precision(),
        **({"products": "tf32"} if narrow else {}),
    }
    return TorchWorker(context, device=_CUDA, precision=precision)
