"""Decomposed with every size as a variable, as `dynamic=True` traces; ATen then computes it."""

from __future__ import annotations

from pathlib import Path

from outvote.dialects.torch_export.workers.modes.decomposed import Decomposed


def create(folder: Path) -> Decomposed:
    return Decomposed("symbolic")
