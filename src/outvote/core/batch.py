"""Many small cases in one message: packed as bytes, checked before they are believed.

An item is two lengths, a header in JSON, and the raw bytes of the arrays that it announces.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outvote.core.arrays import Array, byte_size, dtype_name, from_bytes, to_bytes
from outvote.core.errors import ProtocolError
from outvote.core.model import Json
from outvote.core.protocol import Reply, Request
from outvote.core.target import Outcome

_LENGTHS = struct.Struct("<II")
_MOST_TEXT = 2000  # letters of a message


@dataclass(frozen=True)
class GraphCase:
    """A graph, as its dialect writes it, and what its inputs are fed, in their order."""

    content: bytes
    feeds: Sequence[Array]
    leaves: tuple[str, ...] = ()  # the operators that give its outputs, in their order
    signature: str = ""  # of a single node: what it is, without sizes and numbers


@dataclass(frozen=True)
class GraphAnswer:
    """What a runtime made of one graph."""

    outcome: Outcome
    outputs: Sequence[Array] = ()
    message: str = ""
    seconds: float = 0.0  # that the processor took
    types: tuple[str, ...] = ()  # of the outputs, where an array cannot say it: bfloat16

    def type_of(self, place: int) -> str:
        """What an output is of."""
        return self.types[place] if self.types else dtype_name(self.outputs[place])


@dataclass(frozen=True, kw_only=True)
class GraphsDrawn(Reply):
    """Packed cases; how many draws did not work out."""

    cases: Array
    refused: int


@dataclass(frozen=True, kw_only=True)
class DrawCases(Request[GraphsDrawn], deed="draw cases"):
    """Graphs of `least` to `most` nodes; each is drawn by its number and the seed alone."""

    seed: int
    first: int
    count: int
    least: int = 1
    most: int = 5
    kinds: tuple[str, ...] = ()  # all, if none is named


@dataclass(frozen=True, kw_only=True)
class GraphsRan(Reply):
    """Packed answers, one for each case, in their order."""

    answers: Array


@dataclass(frozen=True, kw_only=True)
class RunGraphs(Request[GraphsRan], deed="run graphs in bulk"):
    """Load and run many graphs, each once; what happens to one happens to it alone."""

    cases: Array
    seconds: float = 10.0  # that one of them may take


@dataclass(frozen=True, kw_only=True)
class GraphsExposed(Reply):
    """Packed cases."""

    cases: Array


@dataclass(frozen=True, kw_only=True)
class ExposeGraphs(Request[GraphsExposed], deed="show all tensors of graphs"):
    """Packed cases, whose graphs are to give what every node gives."""

    cases: Array


@dataclass(frozen=True, kw_only=True)
class GraphsCut(Reply):
    """Packed cases of one node each; of which graph, by its place among those that were cut."""

    cases: Array
    origins: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class CutGraphs(Request[GraphsCut], deed="cut graphs into nodes"):
    """Packed cases, and packed answers to them as they are when all tensors are shown."""

    cases: Array
    answers: Array


@dataclass
class Pack:
    """Items as they are put together."""

    _parts: list[bytes | memoryview] = field(default_factory=list)

    def add(self, header: Json, arrays: Sequence[Array] = ()) -> None:
        self._parts += item(header, arrays)

    def add_packed(self, data: bytes) -> None:
        """Items that are packed already."""
        self._parts.append(data)

    @property
    def array(self) -> Array:
        return np.frombuffer(b"".join(self._parts), np.uint8)


def item(header: Json, arrays: Sequence[Array] = ()) -> list[bytes | memoryview]:
    """One item, in parts."""
    announced = [[dtype_name(array), list(array.shape)] for array in arrays]
    told = json.dumps([header, announced]).encode()
    bodies = [to_bytes(array) for array in arrays]
    size = sum(body.nbytes for body in bodies)
    return [_LENGTHS.pack(len(told), size) + told, *bodies]


def items(packed: Array) -> Iterator[tuple[Json, list[Array]]]:
    """What was packed; raises ProtocolError where the bytes are not what they say."""
    data = memoryview(np.ascontiguousarray(packed, np.uint8).data)
    place = 0
    while place < len(data):
        if place + _LENGTHS.size > len(data):
            raise ProtocolError("a pack of cases ends in the middle of one")
        head, body = _LENGTHS.unpack_from(data, place)
        start = place + _LENGTHS.size + head
        if start + body > len(data):
            raise ProtocolError("a pack of cases ends in the middle of one")
        header, announced = _parsed(bytes(data[start - head : start]))
        yield header, _arrays(announced, data[start : start + body])
        place = start + body


def _parsed(told: bytes) -> tuple[Json, list[Any]]:
    try:
        header, announced = json.loads(told)
        rows = [(str(name), list(shape)) for name, shape in announced]
    except (ValueError, TypeError, RecursionError) as error:
        raise ProtocolError(f"a case in a pack could not be read: {error}") from error
    return header, rows


def _arrays(announced: Sequence[tuple[str, list[int]]], body: memoryview) -> list[Array]:
    sizes = [byte_size(name, shape) for name, shape in announced]
    if sum(sizes) != len(body):
        raise ProtocolError(f"{sum(sizes)} bytes announced for a case, {len(body)} packed")
    found = []
    place = 0
    for (name, shape), size in zip(announced, sizes, strict=True):
        found.append(from_bytes(name, shape, body[place : place + size]))
        place += size
    return found


def packed_cases(cases: Sequence[GraphCase]) -> Array:
    pack = Pack()
    for case in cases:
        header = [list(case.leaves), case.signature]
        pack.add(header, [np.frombuffer(case.content, np.uint8), *case.feeds])
    return pack.array


def cases_in(packed: Array) -> list[GraphCase]:
    found = []
    for header, arrays in items(packed):
        if not arrays or arrays[0].dtype != np.uint8:
            raise ProtocolError("a case in a pack has no graph")
        try:
            leaves, signature = header
            told = tuple(map(str, leaves)), str(signature)
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"a case in a pack could not be read: {error}") from error
        found.append(GraphCase(arrays[0].tobytes(), arrays[1:], *told))
    return found


def packed_answers(answers: Sequence[GraphAnswer]) -> Array:
    pack = Pack()
    for answer in answers:
        for part in answer_item(answer):
            pack.add_packed(bytes(part))
    return pack.array


def answer_item(answer: GraphAnswer) -> list[bytes | memoryview]:
    told = answer.message[:_MOST_TEXT]
    header = [answer.outcome.value, told, answer.seconds, list(answer.types)]
    return item(header, answer.outputs)


def answers_in(packed: Array, count: int) -> list[GraphAnswer]:
    """As many answers as there were cases; everything else is garbage."""
    found = []
    for header, arrays in items(packed):
        try:
            outcome, message, seconds, types = header
            told = str(message), float(seconds), tuple(map(str, types))
            found.append(GraphAnswer(Outcome(outcome), arrays, *told))
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"an answer in a pack could not be read: {error}") from error
    if any(one.types and len(one.types) != len(one.outputs) for one in found):
        raise ProtocolError("an answer in a pack has other types than outputs")
    if len(found) != count:
        raise ProtocolError(f"{len(found)} answers to {count} cases")
    return found
