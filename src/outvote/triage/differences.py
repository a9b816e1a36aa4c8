"""Differences that are meant or left open: a list of our own, as data (differences.toml)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.dialect import dialect
from outvote.core.model import Layer
from outvote.core.outputs import Outputs

if TYPE_CHECKING:
    from outvote.triage.inquiry import Inquiry


@dataclass(frozen=True)
class Difference:
    """One listed difference: where it shows, why it is no bug, and where that is written."""

    layers: tuple[str, ...]
    kinds: tuple[str, ...]
    reason: str
    link: str
    parameters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)  # layer -> the sentence that it rests on
    before: int | None = None  # only in versions of the vocabulary before this one
    where: str = ""  # one of CONDITIONS

    def text(self, kind: str) -> str:
        """The reason, the specification's sentence about such a layer, and the link."""
        said = f': "{self.says[kind]}"' if kind in self.says else ""
        return f"{self.reason}{said} ({self.link})."

    def covers(self, asked: Inquiry) -> bool:
        layer = asked.specimen.last
        return (
            layer.kind in self.layers
            and asked.kind in self.kinds
            and all(layer.config.get(k) in values for k, values in self.parameters.items())
            and (self.before is None or _version(layer) < self.before)
            and (not self.where or CONDITIONS[self.where](asked))
        )


def _version(layer: Layer) -> float:
    """Of the vocabulary that the layer's words are of, where its model says one."""
    return float(layer.origin.get("opset", {}).get("", math.inf))


def _vanishes_without_nan(asked: Inquiry) -> bool:
    """NaN is read, and with numbers in its place nothing differs."""
    if not any(map(_holds_nan, asked.read)):
        return False
    seen = asked.again(lambda x: np.where(np.isnan(x), 1.0, x) if _holds_nan(x) else x)
    return seen.kind is None and seen.outputs.keys() == asked.seen.outputs.keys()


def _is_beyond_the_type(asked: Inquiry) -> bool:
    """All that differs are integers whose exact result their type does not hold."""
    exact = _reals(asked)
    if exact is None:
        return False
    left = [_without_beyond(found, exact) for found in asked.seen.outputs.values()]
    return all(asked.seen.rounding.explains(a, b) for a, b in pairwise(left))


def _is_between(asked: Inquiry) -> bool:
    """All give one of the two integers beside the exact result; that itself, if it is one."""
    exact = _reals(asked)
    if exact is None:
        return False
    return all(
        x.dtype.kind in "iu" and bool((_is_beside(x, y) | _beyond(x, y)).all())
        for found in asked.seen.outputs.values()
        for x, y in zip(found.arrays, exact.arrays, strict=True)
    )


def _reals(asked: Inquiry) -> Outputs | None:
    """What real numbers would give, if all have its shapes."""
    exact = asked.reals
    shapes = [[x.shape for x in found.arrays] for found in asked.seen.outputs.values()]
    fits = exact is not None and all(some == [x.shape for x in exact.arrays] for some in shapes)
    return exact if fits else None


def _is_the_last_window(asked: Inquiry) -> bool:
    """Shapes differ by one place at the end of spatial axes."""
    shapes = [x.shape for found in asked.seen.outputs.values() for x in found.arrays[:1]]
    same = len({(len(shape), *shape[:2]) for shape in shapes}) == 1
    return same and all(
        abs(n - m) <= 1 for a, b in pairwise(shapes) for n, m in zip(a, b, strict=True)
    )


def _is_the_type_alone(asked: Inquiry) -> bool:
    """Shapes are equal, and so are the numbers wherever the types are."""
    found = list(asked.seen.outputs.values())
    return all(
        [x.shape for x in a.arrays] == [y.shape for y in b.arrays]
        and all(
            np.array_equal(x, y)
            for x, y, one, other in zip(a.arrays, b.arrays, a.dtypes, b.dtypes, strict=True)
            if one == other
        )
        for a, b in pairwise(found)
    )


CONDITIONS: Mapping[str, Callable[[Inquiry], bool]] = {
    "nan": _vanishes_without_nan,
    "beyond": _is_beyond_the_type,
    "between": _is_between,
    "last window": _is_the_last_window,
    "types": _is_the_type_alone,
}


def _holds_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _beyond(found: Array, exact: Array) -> Array:
    if found.dtype.kind not in "iu":
        return np.zeros(found.shape, bool)
    ends = np.iinfo(found.dtype)
    return np.asarray((exact >= float(ends.max) + 1) | (exact < float(ends.min)))


def _without_beyond(found: Outputs, exact: Outputs) -> Outputs:
    pairs = zip(found.arrays, exact.arrays, strict=True)
    arrays = tuple(np.where(_beyond(x, y), np.zeros((), x.dtype), x) for x, y in pairs)
    return replace(found, arrays=arrays)


def _is_beside(found: Array, exact: Array) -> Array:
    return np.asarray((np.floor(exact) <= found) & (found <= np.ceil(exact)))


def listed(asked: Inquiry) -> Difference | None:
    """The entry that covers what shows on this specimen."""
    entries = differences_of(asked.specimen.model.dialect)
    return next((entry for entry in entries if entry.covers(asked)), None)


@cache
def differences_of(spoken: str) -> tuple[Difference, ...]:
    """The list of one dialect; one without a list means none of its differences."""
    file = dialect(spoken).folder / "differences.toml"
    if not file.exists():
        return ()
    found = tomllib.loads(file.read_text(encoding="utf-8"))["difference"]
    return tuple(_entry(told) for told in found)


def _entry(told: Mapping[str, Any]) -> Difference:
    says = told.get("says", {})
    return Difference(
        tuple(told.get("layers", says)),
        tuple(told["kinds"]),
        told["reason"],
        told["link"],
        told.get("parameters", {}),
        says,
        told.get("before"),
        told.get("where", ""),
    )
