"""One node with tensors in place: what every formula of the reference is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import REF, Json, Layer
from outvote.core.states import State
from outvote.dialects.onnx.nouns.node import STRINGS, WEIGHT, opset_of, origin_of


class Uncovered(Exception):  # noqa: N818 - a limit of the reference, not an error of anyone
    """There is no formula for this operator, attribute, type or argument."""


@dataclass(frozen=True)
class NodeCall:
    """A node's attributes and arguments; floats are float64, None is an argument left out.

    Every attribute must be read: one that a formula does not know may change the result.
    """

    kind: str
    opset: int
    config: Mapping[str, Json]
    args: tuple[Array | None, ...]
    outputs: tuple[int, ...]  # which of the operator's outputs are wanted
    types: tuple[str, ...] = ()  # of the arguments, before they were widened; empty: left out
    _read: set[str] = field(default_factory=set)

    def get(self, name: str, default: Json = None) -> Json:
        """An attribute; the default is the operator's."""
        self._read.add(name)
        return self.config.get(name, default)

    def only(self, name: str, *values: Json) -> Json:
        """An attribute that is covered for these values alone; the first is the default."""
        value = self.get(name, values[0])
        if value not in values:
            raise Uncovered(f"{self.kind}({name}={value!r})")
        return value

    def arg(self, place: int) -> Array | None:
        """An argument that may be left out."""
        return self.args[place] if place < len(self.args) else None

    def need(self, place: int) -> Array:
        """An argument that must be there."""
        found = self.arg(place)
        if found is None:
            raise Uncovered(f"{self.kind} without its argument {place}")
        return found

    def every(self) -> list[Array]:
        """All arguments of an operator that takes any number of them."""
        return [self.need(place) for place in range(len(self.args))]

    def floats(self, place: int = 0) -> Array:
        """An argument that must hold floats."""
        found = self.need(place)
        if found.dtype.kind != "f":
            raise Uncovered(f"{self.kind} of {found.dtype}")
        return found

    def whole(self, place: int, attribute: str, since: int) -> list[int] | None:
        """Integers that were an attribute before some opset, and are an argument from then on."""
        if self.opset < since:
            told = self.get(attribute)
            return None if told is None else [int(n) for n in told]
        found = self.arg(place)
        return None if found is None else [int(n) for n in found.reshape(-1)]

    def require_all_read(self) -> None:
        for name in self.config:
            if name not in self._read:
                raise Uncovered(f"{self.kind}({name}={self.config[name]!r})")


def call_of(layer: Layer, weights: Sequence[Array], given: Sequence[State]) -> NodeCall:
    """A layer as its formula wants it."""
    if layer.kwargs:
        raise Uncovered(f"{layer.kind} with sub-graphs")
    tensors = iter(given)
    pairs = [_argument(item, weights, tensors) for item in layer.args]
    args = [None if array is None else _wide(array) for array, _ in pairs]
    origin = origin_of(layer)
    types = tuple(dtype for _, dtype in pairs)
    return NodeCall(layer.kind, opset_of(layer), layer.config, tuple(args), origin.outputs, types)


def _argument(
    item: Json, weights: Sequence[Array], tensors: Iterator[State]
) -> tuple[Array | None, str]:
    """An argument and the name of its type."""
    if item is None:
        return None, ""
    if REF in item:
        state = next(tensors)
        return state.array, state.dtype or state.array.dtype.name
    if STRINGS in item:
        raise Uncovered("strings")
    array = weights[item[WEIGHT]]
    return array, str(item.get("type") or array.dtype.name)


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array
