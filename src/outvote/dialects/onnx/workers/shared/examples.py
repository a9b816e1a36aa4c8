"""ONNX' own node tests as cases of tensors, each with its known answer.

Our models are given tensors and give tensors. Where an example takes or gives a sequence or an
optional, nodes around it make that of tensors, and take it apart again. `bare` is the same example
with what an optional holds in its place, for runtimes whose optionals are no more than that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from outvote.core.arrays import TEXT, Array
from outvote.dialects.onnx.nouns.types import as_texts, widened

_TENSOR, _SEQUENCE, _OPTIONAL = "tensor_type", "sequence_type", "optional_type"


@dataclass(frozen=True)
class Tensor:
    """Numbers as they travel, narrow types widened, and the type that they stand for."""

    array: Array
    dtype: str

    @classmethod
    def of(cls, given: Any) -> Tensor:
        exact = numpy_helper.to_array(given) if isinstance(given, TensorProto) else given
        array = np.asarray(exact)
        if array.dtype.kind in "OSU":
            return cls(as_texts(array), TEXT)
        return cls(widened(array), array.dtype.name)


@dataclass(frozen=True)
class NodeTest:
    """One example of ONNX: a model, what goes in, what must come out, how exactly."""

    name: str
    proto: onnx.ModelProto
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    relative: float
    absolute: float
    bare: NodeTest | None = None

    @property
    def operators(self) -> set[str]:
        return {node.op_type for node in self.proto.graph.node}


def node_tests(only: str = "", limit: int | None = None) -> list[NodeTest]:
    """Those whose name holds a word, made anew by ONNX; the first set of data of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    chosen = [case for case in cases if only in case.name]
    return [_test(case) for case in chosen[:limit]]


def _test(case: Any) -> NodeTest:
    test = _made(case, bare=False)
    kinds = [value.type.WhichOneof("value") for value in case.model.graph.input]
    return replace(test, bare=_made(case, bare=True)) if _OPTIONAL in kinds else test


def _made(case: Any, bare: bool) -> NodeTest:
    inputs, outputs = case.data_sets[0]
    proto = onnx.ModelProto()
    proto.CopyFrom(case.model)
    graph = proto.graph
    before, after = _Around("before", bare), _Around("after", bare)
    made = [list(before.given(value, x)) for value, x in zip(graph.input, inputs, strict=True)]
    told = [list(after.taken(value, y)) for value, y in zip(graph.output, outputs, strict=True)]
    for node in graph.node:
        node.input[:] = ["" if name in before.nothing else name for name in node.input]
    nodes = [*before.nodes, *graph.node, *after.nodes]
    for field, items in (
        (graph.node, nodes),
        (graph.input, [value for pairs in made for value, _ in pairs]),
        (graph.output, [value for pairs in told for value, _ in pairs]),
    ):
        copies = [type(item).FromString(item.SerializeToString()) for item in items]
        del field[:]
        field.extend(copies)
    graph.initializer.extend(after.constants)
    return NodeTest(
        case.name,
        proto,
        tuple(tensor for pairs in made for _, tensor in pairs),
        tuple(tensor for pairs in told for _, tensor in pairs),
        case.rtol,
        case.atol,
    )


class _Around:
    """The nodes in front of an example, or behind it."""

    def __init__(self, prefix: str, bare: bool) -> None:
        self._prefix = prefix
        self._bare = bare
        self.nothing: list[str] = []
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []

    def given(self, value: Any, x: Any) -> Iterator[tuple[Any, Tensor]]:
        """The tensors that an input is made of."""
        kind = value.type.WhichOneof("value")
        if kind == _TENSOR:
            yield value, Tensor.of(x)
        elif kind == _SEQUENCE:
            yield from self._sequence(value.name, value.type.sequence_type.elem_type, x)
        elif self._bare and x is None:
            self.nothing.append(value.name)
        elif self._bare:
            inner = helper.make_value_info(value.name, value.type.optional_type.elem_type)
            yield from self.given(inner, x)
        elif x is None:
            self._add("Optional", [], value.name, type=value.type.optional_type.elem_type)
        else:
            inner = helper.make_value_info(f"{value.name}.held", value.type.optional_type.elem_type)
            yield from self.given(inner, x)
            self._add("Optional", [inner.name], value.name)

    def _sequence(self, name: str, element: Any, x: Any) -> Iterator[tuple[Any, Tensor]]:
        code = element.tensor_type.elem_type
        parts = []
        for place, item in enumerate(x):
            tensor = Tensor.of(item)
            parts.append(f"{name}.{place}")
            yield helper.make_tensor_value_info(parts[-1], code, tensor.array.shape), tensor
        if parts:
            self._add("SequenceConstruct", parts, name)
        else:
            self._add("SequenceEmpty", [], name, dtype=code)

    def taken(self, value: Any, y: Any) -> Iterator[tuple[Any, Tensor]]:
        """The tensors that an output is taken apart into."""
        kind = value.type.WhichOneof("value")
        if kind == _TENSOR:
            yield value, Tensor.of(y)
        elif kind == _SEQUENCE:
            code = value.type.sequence_type.elem_type.tensor_type.elem_type
            yield self._counted("SequenceLength", value.name, np.array(len(y), np.int64))
            for place, item in enumerate(y):
                index = numpy_helper.from_array(np.array(place, np.int64), f"{value.name}:{place}")
                self.constants.append(index)
                part = f"{value.name}.{place}"
                self._add("SequenceAt", [value.name, index.name], part)
                tensor = Tensor.of(item)
                yield helper.make_tensor_value_info(part, code, tensor.array.shape), tensor
        else:
            yield self._counted("OptionalHasElement", value.name, np.array(y is not None))
            if y is not None:
                inner = helper.make_value_info(
                    f"{value.name}.held", value.type.optional_type.elem_type
                )
                self._add("OptionalGetElement", [value.name], inner.name)
                yield from self.taken(inner, y)

    def _counted(self, operator: str, name: str, wanted: Array) -> tuple[Any, Tensor]:
        told = f"{name}.{operator}"
        self._add(operator, [name], told)
        code = helper.np_dtype_to_tensor_dtype(wanted.dtype)
        return helper.make_tensor_value_info(told, code, []), Tensor.of(wanted)

    def _add(self, operator: str, read: list[str], made: str, **attributes: Any) -> None:
        name = f"{self._prefix}.{made}"
        self.nodes.append(helper.make_node(operator, read, [made], name=name, **attributes))
