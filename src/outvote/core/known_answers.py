"""What a model must answer, where that is known: the arrays `answer0`, `answer1`, … of its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, takewhile

import numpy as np

from outvote.core.arrays import TEXT, Array
from outvote.core.errors import UsageError
from outvote.core.outputs import Outputs

NAME, TYPES, TOLERANCE = "answer", "answer_types", "answer_tolerance"
_TOLERANCE = (1e-3, 1e-7)  # relative and absolute, as ONNX' own tests have it


@dataclass(frozen=True)
class KnownAnswers:
    """All outputs of a model, and how near to them one must be."""

    outputs: Outputs
    relative: float
    absolute: float

    def contradiction(self, found: Outputs) -> str:
        """What is wrong with a target's outputs; empty where nothing is."""
        right = self.outputs
        if len(found.arrays) != len(right.arrays):
            return f"{len(found.arrays)} outputs instead of {len(right.arrays)}"
        pairs = zip(found.arrays, found.dtypes, right.arrays, right.dtypes, strict=True)
        return next(filter(None, (self._parted(*pair) for pair in pairs)), "")

    def _parted(self, got: Array, got_type: str, right: Array, right_type: str) -> str:
        if (got.shape, got_type) != (right.shape, right_type):
            return f"{got_type}{list(got.shape)} instead of {right_type}{list(right.shape)}"
        wide = (got.astype(np.float64), right.astype(np.float64))
        same = np.isclose(*wide, self.relative, self.absolute, equal_nan=True)
        return "" if same.all() else f"{(~same).sum()} of {same.size} values are others"


def answers_of(arrays: Mapping[str, Array], source: str) -> KnownAnswers | None:
    """The answers among the arrays of a data file; None where there are none."""
    names = list(takewhile(arrays.__contains__, (f"{NAME}{place}" for place in count())))
    if not names:
        return None
    found = tuple(arrays[name] for name in names)
    types = arrays.get(TYPES, np.array([_type_of(array) for array in found]))
    tolerance = arrays.get(TOLERANCE, np.array(_TOLERANCE))
    if types.shape != (len(found),) or types.dtype.kind != "U":
        raise UsageError(f"{TYPES} of {source} must name a type for each of {', '.join(names)}")
    if tolerance.shape != (2,) or tolerance.dtype.kind != "f" or not (tolerance >= 0).all():
        raise UsageError(f"{TOLERANCE} of {source} must hold two numbers: relative and absolute")
    if any(array.dtype.kind not in "buifU" for array in found):
        raise UsageError(f"the answers of {source} must be numbers or texts")
    outputs = Outputs(found, tuple(map(str, types)), (None,) * len(found))
    return KnownAnswers(outputs, *map(float, tolerance))


def answers_arrays(answers: KnownAnswers) -> dict[str, Array]:
    """The same as arrays of a data file."""
    found = {f"{NAME}{place}": array for place, array in enumerate(answers.outputs.arrays)}
    found[TYPES] = np.array(answers.outputs.dtypes)
    found[TOLERANCE] = np.array([answers.relative, answers.absolute])
    return found


def _type_of(array: Array) -> str:
    return TEXT if array.dtype.kind == "U" else array.dtype.name
