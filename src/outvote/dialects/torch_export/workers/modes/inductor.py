"""`torch.compile` as it is by default: kernels that Inductor writes, in C++ on a CPU."""

from __future__ import annotations

from pathlib import Path

from outvote.dialects.torch_export.workers.shared.compile import Compiled


def create(folder: Path) -> Compiled:
    return Compiled("inductor", folder)
