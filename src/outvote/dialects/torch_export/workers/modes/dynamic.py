"""`torch.compile(dynamic=True)`: kernels of Inductor in which sizes are variables."""

from __future__ import annotations

from pathlib import Path

from outvote.dialects.torch_export.workers.shared.compile import Compiled


def create(folder: Path) -> Compiled:
    return Compiled("inductor", folder, dynamic=True)
