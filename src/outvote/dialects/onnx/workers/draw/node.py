"""One node in the making: which tensors it reads, which attributes it has.

A drawer is a function of a `NodeDraw` that returns a `NewNode` or raises `Unfit`. What is not drawn
by its name is drawn by its schema alone (`by_schema`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from onnx import TensorProto

from outvote.core.arrays import Array
from outvote.dialects.onnx.nouns.attributes import LEFT_ALONE, values_of
from outvote.dialects.onnx.nouns.operators import Operator, Slot
from outvote.dialects.onnx.nouns.types import CODES
from outvote.dialects.onnx.workers.draw.numbers import Range, drawn
from outvote.dialects.onnx.workers.draw.sketch import (
    Accept,
    Draft,
    NewNode,
    Sketch,
    Unfit,
    Value,
    anything,
    constant_of,
    operator_in,
)

T = TypeVar("T")
# How often each type is drawn, where an operator has it.
TYPES = {
    "float32": 60,
    "float64": 5,
    "float16": 5,
    "int64": 8,
    "int32": 6,
    "bool": 6,
    "uint8": 3,
    "int8": 3,
    "int16": 1,
    "uint16": 1,
    "uint32": 1,
    "uint64": 1,
}
_KNOWN = 0.6  # of the tensors besides the first, that are there already, if any fits
_CONSTANT = 0.5  # of the new ones
_SET = 0.5  # of the attributes that need not be set
_CHANNELS = (1, 2, 3, 4, 6)
_SIDES = (1, 2, 3, 4, 5, 6, 7)
_RANKS = (1, 2, 2, 3, 3, 4, 4, 0, 5)
_MOST = 4096  # numbers in a tensor


class NodeDraw:
    """What a drawer draws from. `link` is the tensor that the node has to read."""

    def __init__(self, sketch: Sketch, kind: str, link: Value | None = None) -> None:
        self.sketch = sketch
        self.kind = kind
        self.rng = sketch.rng
        self.opset = sketch.opset
        self.operator: Operator = operator_in(kind, sketch.opset)
        self._link = link
        self._constants: list[TensorProto] = []
        self._fed: list[Value] = []
        self._ranges: dict[str, Range] = {}

    # Chance.

    def chance(self, share: float = 0.5) -> bool:
        return self.rng.random() < share

    def one_of(self, values: Sequence[T]) -> T:
        if not values:
            raise Unfit("nothing to choose from")
        return values[int(self.rng.random() * len(values))]

    def between(self, low: int, high: int) -> int:
        """Both ends included."""
        if high < low:
            raise Unfit(f"nothing between {low} and {high}")
        return self.rng.randint(low, high)

    # Tensors.

    def types(self, place: int) -> tuple[str, ...]:
        """What the input at a place may hold."""
        slots = self.operator.inputs
        return slots[min(place, len(slots) - 1)].types

    def tensor(
        self,
        types: Collection[str],
        fits: Callable[[Value], bool] = lambda value: True,
        shape: Callable[[], tuple[int, ...]] | None = None,
        *,
        new: bool = True,
        range: Range | None = None,
    ) -> Value:
        """A tensor of one of these types that fits: the link, one that is there, or a new one."""

        def suits(value: Value) -> bool:
            return value.dtype in types and value.is_known and fits(value)

        link = self._link
        if link is not None and suits(link):
            self._link = None
            return link
        known = [value for value in (*self.sketch.values, *self._fed) if suits(value)]
        if known and (not new or self.chance(_KNOWN)):
            return self.one_of(known)
        if not new:
            raise Unfit("no tensor fits")
        made = self.fresh(self.dtype(types), shape or self.any_shape, range)
        if not fits(made):
            raise Unfit(f"{made.shape} does not fit")
        return made

    def dtype(self, types: Collection[str]) -> str:
        """One of these types, as often as it is worth."""
        weighed = [(name, TYPES[name]) for name in TYPES if name in types]
        if not weighed:
            raise Unfit(f"none of the types {sorted(types)} is drawn")
        names, weights = zip(*weighed, strict=True)
        return str(self.rng.choices(names, weights)[0])

    def fresh(
        self, dtype: str, shape: Callable[[], tuple[int, ...]], range: Range | None = None
    ) -> Value:
        """A new input of the graph; a constant where its inputs are settled."""
        if self.sketch.closed:
            numbers = self.array(dtype, shape(), range or Range.NORMAL)
            return Value(self.constant(numbers, dtype), dtype, numbers.shape, computed=False)
        value = Value(self.sketch.unused("x"), dtype, shape(), computed=False)
        self._fed.append(value)
        if range is not None:
            self._ranges[value.name] = range
        return value

    def operand(self, dtype: str, shape: Sequence[int], range: Range | None = None) -> str:
        """A tensor of that form: one that is there, a new input or a constant."""
        wanted = tuple(shape)
        if range is None:
            link = self._link
            if link is not None and (link.dtype, link.shape) == (dtype, wanted):
                self._link = None
                return link.name
            known = [v for v in self.sketch.values if (v.dtype, v.shape) == (dtype, wanted)]
            if known and self.chance(_KNOWN):
                return self.one_of(known).name
        if self.chance(_CONSTANT):
            return self.constant(self.array(dtype, wanted, range or Range.NORMAL), dtype)
        return self.fresh(dtype, lambda: wanted, range).name

    def array(self, dtype: str, shape: Sequence[int], range: Range = Range.NORMAL) -> Array:
        if math.prod(shape) > _MOST:
            raise Unfit(f"{shape} is too large")
        return drawn(self.sketch.numbers, tuple(shape), dtype, range)

    def constant(self, array: Any, dtype: str | None = None) -> str:
        """The name of a new constant of the graph."""
        name = self.sketch.unused("c")
        told = dtype or np.asarray(array).dtype.name
        self._constants.append(constant_of(name, array, told))
        return name

    def weights(self, dtype: str, shape: Sequence[int]) -> str:
        """A constant, or a new input, that keeps the scale of what it is multiplied with."""
        if dtype.startswith("float") and self.chance(0.8):
            fan = max(1, math.prod(shape[1:]))
            return self.constant(self.array(dtype, shape) / math.sqrt(fan), dtype)
        return self.operand(dtype, shape)

    def any_shape(self) -> tuple[int, ...]:
        return self.shape_of(self.one_of(_RANKS))

    def shape_of(self, rank: int) -> tuple[int, ...]:
        """Batch, channels, and sides."""
        if rank < 2:
            return (self.one_of(_SIDES),) * rank
        batch = self.between(1, 3)
        sides = [self.one_of(_SIDES if rank < 5 else _SIDES[:4]) for _ in range(rank - 2)]
        return (batch, self.one_of(_CHANNELS), *sides)

    def ranked(self, *ranks: int, types: Collection[str] | None = None) -> Value:
        """The first tensor of an operator that takes tensors of these ranks only."""
        return self.tensor(
            types or self.types(0),
            lambda value: value.rank in ranks,
            lambda: self.shape_of(self.one_of(ranks)),
        )

    def image(self, *, types: Collection[str] | None = None) -> Value:
        """Batch, channels, and one to three sides."""
        return self.ranked(4, 3, 4, 5, 4, types=types)

    def least(self, rank: int, types: Collection[str] | None = None) -> Value:
        """The first tensor of an operator that takes tensors of that rank and above."""
        return self.tensor(
            types or self.types(0),
            lambda value: value.rank >= rank,
            lambda: self.shape_of(self.between(rank, max(rank, 4))),
        )

    def broadcast(self, first: Value) -> tuple[int, ...]:
        """A shape that goes with that of another tensor: the same, or less of it."""
        shape = [n if isinstance(n, int) else 1 for n in first.shape]
        if self.chance(0.5) and first.shape == tuple(shape):
            return tuple(shape)
        shape = [1 if self.chance(0.4) else n for n in shape]
        return tuple(shape[self.between(0, len(shape)) :])

    # Attributes.

    def axis(self, rank: int) -> int:
        return self.between(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Some axes, each once, some counted from the end."""
        chosen = self.rng.sample(range(rank), self.between(min(least, rank), rank))
        return [axis - rank if self.chance(0.4) else axis for axis in chosen]

    def setting(self, name: str) -> Any:
        """A value of an attribute from the table."""
        row = values_of(self.operator.name, name)
        if row is None or not row.legal(self.opset):
            raise Unfit(f"no values are known for {name}")
        return self.one_of(row.legal(self.opset))

    def settings(self, *names: str, share: float = _SET) -> dict[str, Any]:
        """Some of these attributes, of those that the operator has."""
        return {
            name: self.setting(name)
            for name in names
            if self.operator.attribute(name) is not None and self.chance(share)
        }

    # The node.

    def node(self, *inputs: str | Value, outputs: int = 1, **settings: Any) -> NewNode:
        """Inputs by their place; settings become inputs or attributes, as the version has them.

        A setting that the version does not have is left out, and one that is None.
        """
        names = [item.name if isinstance(item, Value) else item for item in inputs]
        attributes = {}
        for name, value in settings.items():
            place = self._place(name)
            if value is None:
                continue
            if place is not None:
                names += [""] * (place + 1 - len(names))
                names[place] = self._told(value, self.operator.inputs[place])
            elif self.operator.attribute(name) is not None:
                attributes[name] = value
        return NewNode(self.kind, tuple(names), attributes, outputs)

    def _place(self, name: str) -> int | None:
        slots = self.operator.inputs
        return next((place for place, slot in enumerate(slots) if slot.name == name), None)

    def _told(self, value: Any, slot: Slot) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, Value):
            return value.name
        dtype = "int64" if "int64" in slot.types else slot.types[0]
        return self.constant(np.asarray(value), dtype)

    def added(self, proposed: NewNode, accept: Accept = anything) -> list[Value]:
        """The node in the graph, with what was made for it."""
        if self._link is not None:
            raise Unfit(f"{proposed.kind} does not read what it has to")
        read = set(proposed.inputs)
        draft = Draft(
            tuple(tensor for tensor in self._constants if tensor.name in read),
            tuple(value for value in self._fed if value.name in read),
        )
        made = self.sketch.add(proposed, draft, accept)
        self.sketch.ranges |= self._ranges
        return made


Drawer = Callable[[NodeDraw], NewNode]


def by_schema(draw: NodeDraw) -> NewNode:
    """A node by its schema alone: tensors by type, attributes from the table."""
    bound: dict[str, str] = {}
    first: Value | None = None
    names: list[str] = []
    for slot in draw.operator.inputs:
        if slot.option == "optional" and draw.chance(0.6):
            names.append("")
            continue
        count = draw.between(1, 3) if slot.option == "variadic" else 1
        for _ in range(count):
            value = _operand(draw, slot, bound, first)
            first = first or value
            names.append(value.name)
    attributes = {
        found.name: _attribute(draw, found.name, first)
        for found in draw.operator.attributes
        if found.required or (found.name not in LEFT_ALONE and draw.chance(_SET))
    }
    while names and not names[-1]:
        names.pop()
    return NewNode(draw.kind, tuple(names), attributes, _output_count(draw))


def _operand(draw: NodeDraw, slot: Slot, bound: dict[str, str], first: Value | None) -> Value:
    """A tensor for a slot; behind the first, one that can be broadcast with it."""
    types = (bound[slot.variable],) if slot.variable in bound else slot.types
    if first is None:
        value = draw.tensor(types)
    else:
        known = first
        value = draw.tensor(
            types, lambda v: fit_together(v.shape, known.shape), lambda: draw.broadcast(known)
        )
    if slot.alike:
        bound[slot.variable] = value.dtype
    return value


def fit_together(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes can be broadcast."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(n == m or n == 1 or m == 1 for n, m in pairs)


def _attribute(draw: NodeDraw, name: str, first: Value | None) -> Any:
    row = values_of(draw.operator.name, name)
    if row is None:
        raise Unfit(f"no values are known for {name}")
    rank = first.rank if first is not None else 0
    if row.form == "axis":
        return draw.axis(rank)
    if row.form == "axes":
        return draw.axes(rank)
    if row.form == "order":
        return draw.rng.sample(range(rank), rank)
    return draw.setting(name)


def _output_count(draw: NodeDraw) -> int:
    """Those that must be, and of the others as many as chance wants."""
    slots = draw.operator.outputs
    count = sum(slot.option != "optional" for slot in slots)
    while count < len(slots) and draw.chance(0.3):
        count += 1
    return count


def code(dtype: str) -> int:
    """As ONNX numbers its types."""
    return CODES[dtype]


def codes(draw: NodeDraw, place: int = 0) -> list[int]:
    """The types that an output may have, of those that are drawn."""
    return [CODES[name] for name in draw.operator.outputs[place].types if name in TYPES]


Table = Mapping[str, Drawer]
