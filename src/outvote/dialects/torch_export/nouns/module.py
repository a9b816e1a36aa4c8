"""What a module answered in the user's process, as a file: its inputs, outputs, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outvote.core.arrays import Array
from outvote.core.files import save_npz

MODULE = "torch:module"  # the target
ANSWERS = "OUTVOTE_MODULE"  # the variable that tells a worker where they are
SUFFIX = ".answers.npz"
_TYPES = "types"


@dataclass(frozen=True)
class ModuleAnswers:
    """Outputs in the order in which `torch.export` lays them flat; bfloat16 travels as float32."""

    inputs: Sequence[Array]
    outputs: Sequence[Array]
    types: Sequence[str]

    def write(self, path: Path) -> None:
        named = {f"x{n}": array for n, array in enumerate(self.inputs)}
        named |= {f"y{n}": array for n, array in enumerate(self.outputs)}
        save_npz(path, {**named, _TYPES: np.array(self.types, np.str_)})

    @staticmethod
    def read(path: Path) -> ModuleAnswers:
        with np.load(path, allow_pickle=False) as file:
            found = {letter: [n for n in file.files if n[0] == letter] for letter in "xy"}
            inputs, outputs = ([file[name] for name in found[letter]] for letter in "xy")
            return ModuleAnswers(inputs, outputs, [str(name) for name in file[_TYPES]])

    def are_to(self, given: Sequence[Array]) -> bool:
        """Whether these inputs were answered."""
        pairs = zip(given, self.inputs, strict=True) if len(given) == len(self.inputs) else ()
        same = [
            (a.shape, a.dtype.name, a.tobytes()) == (b.shape, b.dtype.name, b.tobytes())
            for a, b in pairs
        ]
        return bool(same) and all(same)
