"""Typed values as plain data and arrays, and back: by their annotations, checked at both ends.

A frozen dataclass becomes a table of its fields, an array its number in the list of arrays that
goes with the message. What comes back is believed only where it fits the annotation.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, TypeVar

from outvote.core.arrays import Array
from outvote.core.errors import ProtocolError
from outvote.core.model import Json, Model

T = TypeVar("T")


@dataclass(frozen=True)
class Coder:
    """How values of one type are written, and read again; `where` names the place for errors."""

    write: Callable[[Any, list[Array]], Json]
    read: Callable[[Json, Sequence[Array], str], Any]


def written(value: Any) -> tuple[Json, list[Array]]:
    """A dataclass as plain data, and the arrays in it."""
    arrays: list[Array] = []
    return coder(type(value)).write(value, arrays), arrays


def read(kind: type[T], data: Json, arrays: Sequence[Array]) -> T:
    """The dataclass that was written; raises ProtocolError where the data does not fit."""
    found: T = coder(kind).read(data, arrays, kind.__name__)
    return found


def coder(kind: Any) -> Coder:
    """The coder of an annotation, made once."""
    if kind not in _CODERS:
        _CODERS[kind] = _made(kind)
    return _CODERS[kind]


_CODERS: dict[Any, Coder] = {}


def _made(kind: Any) -> Coder:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return Coder(lambda value, arrays: value, lambda data, arrays, where: data)
    if kind is Model:
        return Coder(lambda value, arrays: value.to_json(), lambda data, *_: Model.from_json(data))
    if kind == Array:  # by itself: its origin is another one in every NumPy
        return _ARRAY
    if kind in _PLAIN:
        return _plain(*_PLAIN[kind])
    if origin in (typing.Union, types.UnionType) and type(None) in inner and len(inner) == 2:
        return _optional(next(item for item in inner if item is not type(None)))
    if origin is tuple and inner[-1] is not ...:
        return _row(inner)
    if origin in (tuple, list):
        return _sequence(inner[0], origin)
    if isinstance(origin, type) and issubclass(origin, Mapping) and inner[0] is str:
        return _mapping(inner[1])
    if is_dataclass(kind):
        return _table(kind)
    raise TypeError(f"no coder for {kind!r}")


def _misfit(where: str, wanted: str, data: Json) -> ProtocolError:
    return ProtocolError(f"{where} is {wanted}; received {str(data)[:80]!r}")


_PLAIN: Mapping[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((float, int), "a number"),
}


def _plain(allowed: tuple[type, ...], wanted: str) -> Coder:
    def read(data: Any, arrays: Sequence[Array], where: str) -> Any:
        if not isinstance(data, allowed) or (isinstance(data, bool) and bool not in allowed):
            raise _misfit(where, wanted, data)
        if float not in allowed:
            return data
        try:
            return float(data)  # type: ignore[arg-type]
        except OverflowError:  # a whole number beyond every float
            raise _misfit(where, wanted, data) from None

    return Coder(lambda value, arrays: value, read)


def _write_array(value: Array, arrays: list[Array]) -> Json:
    arrays.append(value)
    return len(arrays) - 1


def _read_array(data: Json, arrays: Sequence[Array], where: str) -> Array:
    if not isinstance(data, int) or isinstance(data, bool) or not 0 <= data < len(arrays):
        raise _misfit(where, f"the number of one of {len(arrays)} arrays", data)
    return arrays[data]


_ARRAY = Coder(_write_array, _read_array)


def _optional(kind: Any) -> Coder:
    inner = coder(kind)
    return Coder(
        lambda value, arrays: None if value is None else inner.write(value, arrays),
        lambda data, arrays, where: None if data is None else inner.read(data, arrays, where),
    )


def _row(kinds: Sequence[Any]) -> Coder:
    inner = [coder(kind) for kind in kinds]

    def read(data: Json, arrays: Sequence[Array], where: str) -> Any:
        if not isinstance(data, list | tuple) or len(data) != len(inner):
            raise _misfit(where, f"a row of {len(inner)}", data)
        return tuple(c.read(item, arrays, where) for c, item in zip(inner, data, strict=True))

    return Coder(
        lambda value, arrays: [c.write(item, arrays) for c, item in zip(inner, value, strict=True)],
        read,
    )


def _sequence(kind: Any, made: Callable[[Any], Any]) -> Coder:
    inner = coder(kind)

    def read(data: Json, arrays: Sequence[Array], where: str) -> Any:
        if not isinstance(data, list | tuple):
            raise _misfit(where, "a list", data)
        return made([inner.read(item, arrays, where) for item in data])

    return Coder(lambda value, arrays: [inner.write(item, arrays) for item in value], read)


def _mapping(kind: Any) -> Coder:
    inner = coder(kind)

    def read(data: Json, arrays: Sequence[Array], where: str) -> Any:
        if not isinstance(data, Mapping):
            raise _misfit(where, "a table", data)
        return {key: inner.read(item, arrays, f"{where}.{key}") for key, item in data.items()}

    return Coder(
        lambda value, arrays: {str(k): inner.write(item, arrays) for k, item in value.items()},
        read,
    )


def _table(kind: Any) -> Coder:
    """A dataclass. Fields that have a default may be missing; unknown ones may not be there."""
    hints = typing.get_type_hints(kind)
    known = [(item, coder(hints[item.name])) for item in fields(kind)]
    names = frozenset(item.name for item in fields(kind))
    required = [
        item.name
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    ]

    def write(value: Any, arrays: list[Array]) -> Json:
        return {item.name: c.write(getattr(value, item.name), arrays) for item, c in known}

    def read(data: Json, arrays: Sequence[Array], where: str) -> Any:
        if not isinstance(data, Mapping):
            raise _misfit(where, "a table", data)
        missing = [name for name in required if name not in data]
        if missing:
            raise ProtocolError(f"{where} lacks {missing[0]!r}")
        if data.keys() - names:
            raise ProtocolError(f"{where} has no field {min(data.keys() - names)!r}")
        found = {
            item.name: c.read(data[item.name], arrays, f"{where}.{item.name}")
            for item, c in known
            if item.name in data
        }
        return kind(**found)

    return Coder(write, read)
