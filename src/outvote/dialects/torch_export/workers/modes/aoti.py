"""AOTInductor: a program compiled ahead into a library, which is then loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch

from outvote.dialects.torch_export.workers.shared.compile import is_gap_of_compiler
from outvote.dialects.torch_export.workers.shared.engine import Program


def create(folder: Path) -> AheadOfTime:
    return AheadOfTime(folder)


class AheadOfTime:
    """One package for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ()
    precision: Mapping[str, Any] = {}

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        path = self._folder / f"program{next(self._numbers)}.pt2"
        program = torch.export.export(module, tuple(examples))
        torch._inductor.aoti_compile_and_package(program, package_path=str(path))
        found: Program = torch._inductor.aoti_load_package(str(path))
        return found

    def is_gap(self, error: Exception) -> bool:
        return is_gap_of_compiler(error)
