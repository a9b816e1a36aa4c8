"""A graph in the making: its tensors with their types and shapes, its nodes and constants."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto

from outvote.core.arrays import TEXT, Array
from outvote.dialects.onnx.nouns.node import operator_of
from outvote.dialects.onnx.nouns.operators import Operator
from outvote.dialects.onnx.nouns.types import CODES, NAMES, carrier
from outvote.dialects.onnx.workers.draw.numbers import Range, drawn
from outvote.dialects.onnx.workers.shared.assemble import tensor_of
from outvote.dialects.onnx.workers.shared.schemas import operator_from
from outvote.worker.unfit import Unfit as Unfit

Size = int | str | None  # a name stands for a free dimension; None: nobody knows
Shape = tuple[Size, ...]
_REFUSALS = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
)
# Functions of which inference tells nothing: they give what they are given, in shape and type.
_KEEP_FORM = ("GroupNormalization", "MeanVarianceNormalization")


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    dtype: str
    shape: Shape
    computed: bool = True  # by a node; the others are fed

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its shape, which must be known."""
        if not all(isinstance(n, int) for n in self.shape):
            raise Unfit(f"{self.shape} is not known")
        return tuple(n for n in self.shape if isinstance(n, int))

    @property
    def is_known(self) -> bool:
        return None not in self.shape

    def size(self, axis: int) -> int:
        """Of one axis, which must be known."""
        found = self.shape[axis]
        if not isinstance(found, int):
            raise Unfit(f"axis {axis} of {self.shape} is free")
        return found


@dataclass(frozen=True)
class NewNode:
    """A node that a drawer proposes: names of what it reads, attributes, how many it gives."""

    kind: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    outputs: int = 1


@dataclass(frozen=True)
class Draft:
    """What a proposed node needs besides what is there: new constants, new inputs of the graph."""

    constants: tuple[TensorProto, ...] = ()
    fed: tuple[Value, ...] = ()


Accept = Callable[[Sequence[Value]], bool]


def anything(values: Sequence[Value]) -> bool:
    return True


def all_known(values: Sequence[Value]) -> bool:
    """Whether shapes are known before anything runs, so that others can read the tensors."""
    return all(value.is_known for value in values)


class Sketch:
    """What is there so far. `add` takes a node in, if inference has nothing against it."""

    def __init__(self, opset: int, seed: int, ir: int = 8, closed: bool = False) -> None:
        """Of a `closed` sketch the inputs are settled: what is new are constants."""
        self.closed = closed
        self.opset = opset
        self.ir = ir
        self.rng = random.Random(seed)  # noqa: S311 - a single choice takes NumPy far longer
        self.numbers = np.random.default_rng(seed)
        self.values: list[Value] = []
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.ranges: dict[str, Range] = {}  # of inputs that are not drawn like the others
        self._read: set[str] = set()
        self._types: dict[str, bytes] = {}
        self._data: dict[str, bytes] = {}
        self._count = 0

    @property
    def fed(self) -> list[Value]:
        """The graph's inputs."""
        return [value for value in self.values if not value.computed]

    @property
    def leaves(self) -> list[Value]:
        """What nodes compute and no node reads: the graph's outputs."""
        return [v for v in self.values if v.computed and v.name not in self._read]

    def unused(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def take(self, value: Value) -> None:
        """A tensor that is there from outside."""
        self.values.append(value)
        self._types[value.name] = _type_of(value.dtype, value.shape)

    def add(
        self, proposed: NewNode, draft: Draft | None = None, accept: Accept = anything
    ) -> list[Value]:
        """Take a node in; raises Unfit where inference refuses it, and then nothing changed.

        `accept` is asked whether what it gives is wanted.
        """
        draft = draft or Draft()
        domain, operator = operator_of(proposed.kind)
        schema = schema_in(proposed.kind, self.opset)
        names = [self.unused("v") for _ in range(proposed.outputs)]
        node = NodeProto(op_type=operator, domain=domain, name=names[0])
        node.input.extend(proposed.inputs)
        node.output.extend(names)
        for name, value in proposed.attributes.items():
            node.attribute.append(attribute_of(name, value))
        types = {t.name: _type_of(NAMES[t.data_type], tuple(t.dims)) for t in draft.constants}
        types |= {value.name: _type_of(value.dtype, value.shape) for value in draft.fed}
        data = {tensor.name: tensor.SerializeToString() for tensor in draft.constants}
        outputs = self._inferred(schema, node, types, data)
        if not accept(outputs):
            raise Unfit("what it gives is not wanted")
        self.values += [*draft.fed, *outputs]
        self.constants += draft.constants
        self.nodes.append(node)
        self._read |= {name for name in node.input if name}
        self._types |= types | {v.name: _type_of(v.dtype, v.shape) for v in outputs}
        self._data |= data
        return outputs

    def _inferred(
        self, schema: Any, node: NodeProto, types: Mapping[str, bytes], data: Mapping[str, bytes]
    ) -> list[Value]:
        read = {name: types.get(name) or self._types[name] for name in node.input if name}
        held = {name: data.get(name) or self._data.get(name) for name in read}
        known = {name: content for name, content in held.items() if content is not None}
        try:
            told = schema._infer_node_outputs(
                node.SerializeToString(), read, known, {}, {"": self.opset}, self.ir
            )
        except _REFUSALS as error:
            raise Unfit(str(error)) from error
        found = {name: TypeProto.FromString(form) for name, form in told.items()}
        if node.op_type in _KEEP_FORM:
            found = {name: TypeProto.FromString(read[node.input[0]]) for name in node.output}
        elif not all(name in found and _has_rank(found[name]) for name in node.output):
            found = self._expanded(node, read)
        return [_value(name, found.get(name)) for name in node.output]

    def _expanded(self, node: NodeProto, read: Mapping[str, bytes]) -> dict[str, TypeProto]:
        """What a whole graph of the node tells: of functions, inference sees the body there."""
        proto = onnx.ModelProto(ir_version=self.ir)
        proto.opset_import.add(domain="", version=self.opset)
        proto.graph.node.append(node)
        for name, form in read.items():
            proto.graph.input.add(name=name).type.ParseFromString(form)
        proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output)
        try:
            inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
        except _REFUSALS as error:
            raise Unfit(str(error)) from error
        return {value.name: value.type for value in inferred.graph.output}

    def model(self) -> onnx.ModelProto:
        """The graph as it is, its leaves as outputs."""
        proto = onnx.ModelProto(ir_version=self.ir)
        proto.opset_import.add(domain="", version=self.opset)
        graph = proto.graph
        graph.name = "drawn"
        graph.node.extend(self.nodes)
        graph.initializer.extend(self.constants)
        for value in self.fed:
            graph.input.append(_info(value))
        for value in self.leaves:
            graph.output.append(_info(value))
        return proto

    def feeds(self) -> list[Array]:
        """Numbers for the graph's inputs."""
        ordinary = self.rng.choice(Range.ALL)
        return [
            drawn(self.numbers, v.sizes, v.dtype, self.ranges.get(v.name, ordinary))
            for v in self.fed
        ]


def _has_rank(told: TypeProto) -> bool:
    return bool(told.tensor_type.HasField("shape"))


def _value(name: str, told: TypeProto | None) -> Value:
    if told is None or not _has_rank(told):
        raise Unfit("nobody knows its rank")
    held = told.tensor_type
    if NAMES.get(held.elem_type, TEXT) == TEXT:
        raise Unfit("no tensor of numbers")
    shape = tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in held.shape.dim
    )
    return Value(name, NAMES[held.elem_type], shape)


@cache
def schema_in(kind: str, opset: int) -> Any:
    """The schema of a kind; raises Unfit where the set does not have it."""
    domain, operator = operator_of(kind)
    try:
        return onnx.defs.get_schema(operator, opset, domain)
    except onnx.defs.SchemaError as error:
        raise Unfit(str(error)) from error


@cache
def operator_in(kind: str, opset: int) -> Operator:
    return operator_from(schema_in(kind, opset))


@cache
def _type_of(dtype: str, shape: Shape) -> bytes:
    made = TypeProto()
    made.tensor_type.elem_type = CODES[dtype]
    made.tensor_type.shape.SetInParent()
    for size in shape:
        dim = made.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size
    return bytes(made.SerializeToString())


def _info(value: Value) -> onnx.ValueInfoProto:
    made = onnx.ValueInfoProto(name=value.name)
    made.type.ParseFromString(_type_of(value.dtype, value.shape))
    return made


def attribute_of(name: str, value: Any) -> AttributeProto:
    """An attribute; its type is that of the value."""
    made = AttributeProto(name=name)
    if isinstance(value, str):
        made.type, made.s = AttributeProto.STRING, value.encode()
    elif isinstance(value, int):
        made.type, made.i = AttributeProto.INT, value
    elif isinstance(value, float):
        made.type, made.f = AttributeProto.FLOAT, value
    elif isinstance(value, TensorProto):
        made.type = AttributeProto.TENSOR
        made.t.CopyFrom(value)
    elif value and isinstance(value[0], str):
        made.type = AttributeProto.STRINGS
        made.strings.extend(item.encode() for item in value)
    elif any(isinstance(item, float) for item in value):
        made.type = AttributeProto.FLOATS
        made.floats.extend(value)
    else:
        made.type = AttributeProto.INTS
        made.ints.extend(value)
    return made


def constant_of(name: str, array: Any, dtype: str) -> TensorProto:
    """A constant of the graph; narrow types are given as what they travel in."""
    return tensor_of(np.asarray(array, carrier(dtype)), dtype, name)
