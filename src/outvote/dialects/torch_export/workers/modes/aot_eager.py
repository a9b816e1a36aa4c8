"""`torch.compile` up to its graph, which ATen computes: what tracing alone changes."""

from __future__ import annotations

from pathlib import Path

from outvote.dialects.torch_export.workers.shared.compile import Compiled


def create(folder: Path) -> Compiled:
    return Compiled("aot_eager", folder)
