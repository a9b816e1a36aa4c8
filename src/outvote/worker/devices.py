"""What a worker says of a device that it computes on, and where there is none."""

from __future__ import annotations

import os

from outvote.worker.main import Refused


class NoGpuError(Refused, NotImplementedError):
    """The machine lacks what the target computes on."""


def is_played() -> bool:
    """Whether the processor plays the GPU: tests of the same code where there is none."""
    return os.environ.get("OUTVOTE_GPU") == "cpu"


def require_gpu(library: str, maker: str, seen: bool) -> None:
    """Refuse to start where a library sees no GPU."""
    if not seen and not is_played():
        raise NoGpuError(f"it needs an {maker} GPU, and {library}, as it is installed, sees none")
