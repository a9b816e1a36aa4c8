"""ONNX' operators as plain data: what a schema says, asked of a worker once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outvote.core.protocol import Reply, Request


@dataclass(frozen=True)
class Slot:
    """One input or output of an operator. `types` are names of tensor types where it is one."""

    name: str
    variable: str  # slots of one variable have one type
    types: tuple[str, ...]
    option: str  # single, optional or variadic
    alike: bool = True  # whether what a variadic one takes is all of one type


@dataclass(frozen=True)
class AttributeSchema:
    """One attribute of an operator."""

    name: str
    type: str  # INT, FLOATS, STRING, ... as ONNX calls them
    required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Operator:
    """An operator as it is in one version of its set."""

    name: str
    domain: str
    since: int  # the version of the set that brought this form of it
    versions: tuple[int, ...]  # all that brought another form
    deprecated: bool
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attributes: tuple[AttributeSchema, ...]
    not_drawn: str = ""  # why no node of it is drawn; empty: some are

    def attribute(self, name: str) -> AttributeSchema | None:
        return next((found for found in self.attributes if found.name == name), None)


@dataclass(frozen=True, kw_only=True)
class OperatorsListed(Reply):
    """The operators by kind."""

    operators: Mapping[str, Operator]


@dataclass(frozen=True, kw_only=True)
class ListOperators(Request[OperatorsListed], deed="list the operators of ONNX"):
    """All operators of a version of ONNX' own set; 0: the newest, with those of other domains."""

    opset: int = 0
