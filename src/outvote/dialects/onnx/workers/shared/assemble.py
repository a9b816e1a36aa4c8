"""Puts a neutral model together as protobuf, the form that every runtime reads."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from outvote.core.arrays import TEXT, Array
from outvote.core.blobs import HEADER_BYTES, BlobStore
from outvote.core.model import REF, Input, Json, Layer, Model, Ref, Weight
from outvote.dialects.onnx.nouns.node import (
    ATTRIBUTE,
    BYTES,
    EMPTY,
    GRAPH,
    STRINGS,
    TYPE,
    WEIGHT,
    operator_of,
    origin_of,
)
from outvote.dialects.onnx.nouns.types import CODES, raw_bytes
from outvote.worker.main import Refused
from outvote.worker.names import named_once

_INLINE_BYTES = 1 << 30  # of weights; protobuf ends at twice that
_SMALL_BYTES = 1 << 20  # a weight that stays inside the protobuf in any case


@dataclass(frozen=True)
class Assembled:
    """A model as protobuf; its inputs and outputs by name, in the model's order.

    Where weights are too many for one message they lie in the folder of blobs, and whoever loads
    the model has to do so from a file in that folder.
    """

    proto: ModelProto
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    external: bool = False
    own: int = 0  # how many of the outputs are the model's; the others are shown for once
    content: bytes | None = None  # the protobuf as bytes, where they are at hand

    @contextmanager
    def stored(self, blobs: Path) -> Iterator[bytes | Path]:
        """What to load: bytes, or a file beside the weights for as long as it takes."""
        data = self.content if self.content is not None else self.proto.SerializeToString()
        if not self.external:
            yield data
            return
        handle, name = tempfile.mkstemp(dir=blobs, suffix=".onnx")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)


def assemble(model: Model, blobs: BlobStore, shown: Sequence[Ref] = ()) -> Assembled:
    """The model as protobuf; `shown` tensors become outputs behind its own."""
    builder = _Builder(model, blobs)
    builder.build(shown)
    outputs, own = tuple(builder.outputs), len(model.outputs)
    return Assembled(builder.proto, model.inputs, outputs, builder.external, own)


class _Builder:
    def __init__(self, model: Model, blobs: BlobStore) -> None:
        self.proto = ModelProto()
        self.outputs: list[str] = []
        self.external = total_bytes(model) > _INLINE_BYTES
        self._model = model
        self._blobs = blobs
        self._taken = {item.name for item in model.inputs} | {la.name for la in model.layers}
        self._tensors = {Ref(item.name): item.name for item in model.inputs}
        self._constants: dict[Weight, str] = {}
        self._functions: set[tuple[str, str]] = set()

    def build(self, shown: Sequence[Ref]) -> None:
        graph = self.proto.graph
        graph.name = self._model.name or "graph"
        for item in self._model.inputs:
            graph.input.append(_value_info(item.name, item.dtype, item.shape))
        for layer in self._model.layers:
            self._add(layer)
        self._stamp()
        for wanted in (*self._model.outputs, *shown):
            name = self._tensors[wanted]
            if name in self.outputs:  # an output is named once
                name = self._passed_on(name)
            self.outputs.append(name)
            graph.output.append(ValueInfoProto(name=name))

    def _add(self, layer: Layer) -> None:
        origin = origin_of(layer)
        node = self.proto.graph.node.add()
        node.name = layer.name
        node.domain, node.op_type = operator_of(layer.kind)
        encoder = _Encoder(self, layer)
        node.input.extend(encoder.argument(item) for item in layer.args)
        while node.input and not node.input[-1]:
            del node.input[-1]
        for index, place in enumerate(origin.outputs):
            while len(node.output) < place:
                node.output.append("")
            node.output.append(self._output(layer.name, index))
        for name, value in layer.config.items():
            node.attribute.append(encoder.attribute(name, value))
        for function in origin.functions:
            self._add_function(function, encoder)

    def _output(self, producer: str, index: int) -> str:
        name = producer if index == 0 else self.unique(f"{producer}.{index}")
        self._tensors[Ref(producer, index)] = name
        return name

    def _add_function(self, function: Json, encoder: _Encoder) -> None:
        key = (function["domain"], function["name"])
        if key in self._functions:
            return
        self._functions.add(key)
        made = self.proto.functions.add()
        made.domain, made.name = key
        made.input.extend(function["inputs"])
        made.output.extend(function["outputs"])
        for domain, version in function["opset"].items():
            made.opset_import.add(domain=domain, version=version)
        for name, value in function["attributes"].items():
            if value is None:
                made.attribute.append(name)
            else:
                made.attribute_proto.append(encoder.attribute(name, value))
        made.node.extend(encoder.node(item, {}) for item in function["nodes"])

    def _passed_on(self, name: str) -> str:
        again = self.unique(f"{name} again")
        self.proto.graph.node.add(op_type="Identity", name=again, input=[name], output=[again])
        return again

    def _stamp(self) -> None:
        """The versions that the layers were written for: they must be of one mind."""
        opset: dict[str, int] = {}
        for layer in self._model.layers:
            origin = origin_of(layer)
            self.proto.ir_version = max(self.proto.ir_version, origin.ir)
            for domain, version in origin.opset.items():
                if opset.setdefault(domain, version) != version:
                    raise Refused(f"layers of opset {opset[domain]} and {version} in one model")
        for domain, version in opset.items():
            self.proto.opset_import.add(domain=domain, version=version)

    def tensor_name(self, ref: Ref) -> str:
        return self._tensors[ref]

    def initializer(self, weight: Weight, dtype: str | None) -> str:
        """The name of a constant of the graph; the same one is put in once."""
        if weight not in self._constants:
            name = self.unique(weight.name or "constant")
            self._constants[weight] = name
            self.proto.graph.initializer.append(self.tensor(weight, dtype, name))
        return self._constants[weight]

    def tensor(self, weight: Weight, dtype: str | None, name: str) -> TensorProto:
        array = self._blobs.get(weight.digest)
        if self.external and array.nbytes > _SMALL_BYTES and dtype in (None, "bfloat16"):
            return _external(array, weight, dtype, name)
        return tensor_of(array, dtype or array.dtype.name, name)

    def text_constant(self, item: Mapping[str, Json]) -> str:
        name = self.unique("texts")
        self.proto.graph.initializer.append(_texts(item, name))
        return name

    def unique(self, name: str) -> str:
        return named_once(self._taken, name)


@dataclass
class _Encoder:
    """Arguments and attributes of one layer as protobuf."""

    builder: _Builder
    layer: Layer
    _scopes: list[dict[str, str]] = field(default_factory=list)

    def argument(self, item: Json) -> str:
        if item is None:
            return ""
        if REF in item:
            return self.builder.tensor_name(Ref(*item[REF]))
        if STRINGS in item:
            return self.builder.text_constant(item)
        return self.builder.initializer(self._weight(item), item.get("type"))

    def _weight(self, item: Mapping[str, Json]) -> Weight:
        return self.layer.weights[item[WEIGHT]]

    def attribute(self, name: str, value: Json) -> AttributeProto:
        made = AttributeProto(name=name)
        if isinstance(value, Mapping) and ATTRIBUTE in value:
            made.ref_attr_name = value[ATTRIBUTE]
            made.type = AttributeProto.AttributeType.Value(value["type"])
        elif isinstance(value, Mapping) and EMPTY in value:
            made.type = AttributeProto.AttributeType.Value(value[EMPTY])
        elif isinstance(value, list | tuple):
            self._many(made, value)
        else:
            self._one(made, value)
        return made

    def _one(self, made: AttributeProto, value: Json) -> None:
        if isinstance(value, int):
            made.type, made.i = AttributeProto.INT, value
        elif isinstance(value, float):
            made.type, made.f = AttributeProto.FLOAT, value
        elif isinstance(value, str) or BYTES in value:
            made.type, made.s = AttributeProto.STRING, _bytes(value)
        elif GRAPH in value:
            made.type = AttributeProto.GRAPH
            made.g.CopyFrom(self.graph(value[GRAPH], made.name))
        elif TYPE in value:
            made.type = AttributeProto.TYPE_PROTO
            made.tp.ParseFromString(base64.b64decode(value[TYPE]))
        else:
            made.type = AttributeProto.TENSOR
            made.t.CopyFrom(self._tensor(value, ""))

    def _many(self, made: AttributeProto, values: Sequence[Json]) -> None:
        first = values[0]
        if all(isinstance(value, int) for value in values):
            made.type = AttributeProto.INTS
            made.ints.extend(values)
        elif isinstance(first, float | int):
            made.type = AttributeProto.FLOATS
            made.floats.extend(values)
        elif isinstance(first, str) or BYTES in first:
            made.type = AttributeProto.STRINGS
            made.strings.extend(_bytes(value) for value in values)
        elif GRAPH in first:
            made.type = AttributeProto.GRAPHS
            made.graphs.extend(self.graph(value[GRAPH], made.name) for value in values)
        else:
            made.type = AttributeProto.TENSORS
            made.tensors.extend(self._tensor(value, "") for value in values)

    def _tensor(self, item: Mapping[str, Json], name: str) -> TensorProto:
        if STRINGS in item:
            return _texts(item, name)
        return self.builder.tensor(self._weight(item), item.get("type"), name)

    def graph(self, told: Json, name: str) -> GraphProto:
        """A sub-graph. Its names get new ones: what stands outside may be called the same."""
        outer = self._scopes[-1] if self._scopes else self._captured()
        scope = dict(outer)
        self._scopes.append(scope)
        made = GraphProto(name=f"{self.layer.name}/{name}")
        for item in told["inputs"]:
            made.input.append(_declared(item, self._inside(item["name"], scope)))
        for constant, item in told["initializers"].items():
            made.initializer.append(self._tensor(item, self._inside(constant, scope)))
        made.node.extend(self.node(item, scope) for item in told["nodes"])
        for item in told["outputs"]:
            made.output.append(_declared(item, scope.get(item["name"], item["name"])))
        self._scopes.pop()
        return made

    def node(self, told: Json, scope: dict[str, str]) -> NodeProto:
        """A node inside a sub-graph or, where the scope is empty, inside a function."""
        made = NodeProto(name=told["name"])
        made.domain, made.op_type = operator_of(told["kind"])
        made.input.extend(scope.get(name, name) for name in told["inputs"])
        made.attribute.extend(self.attribute(*item) for item in told["attributes"].items())
        in_function = not self._scopes
        made.output.extend(
            name if in_function or not name else self._inside(name, scope)
            for name in told["outputs"]
        )
        return made

    def _inside(self, name: str, scope: dict[str, str]) -> str:
        scope[name] = self.builder.unique(f"{self.layer.name}/{name}")
        return scope[name]

    def _captured(self) -> dict[str, str]:
        """What sub-graphs read from outside: their name for it, and ours."""
        return {
            name: self.builder.tensor_name(Ref(*item[REF]))
            for name, item in self.layer.kwargs.items()
        }


def tensor_of(array: Array, dtype: str, name: str) -> TensorProto:
    """An array that has travelled, as a tensor of the type that it stands for."""
    return TensorProto(
        name=name, dims=array.shape, data_type=CODES[dtype], raw_data=raw_bytes(array, dtype)
    )


def _external(array: Array, weight: Weight, dtype: str | None, name: str) -> TensorProto:
    """A tensor whose bytes stay in the blob, behind its header."""
    made = TensorProto(name=name, dims=array.shape, data_type=CODES[dtype or array.dtype.name])
    made.data_location = TensorProto.EXTERNAL
    size = array.nbytes // (2 if dtype == "bfloat16" else 1)
    told = {"location": weight.digest, "offset": HEADER_BYTES, "length": size}
    for key, value in told.items():
        made.external_data.add(key=key, value=str(value))
    return made


def _texts(item: Mapping[str, Json], name: str) -> TensorProto:
    made = TensorProto(name=name, dims=item["shape"], data_type=CODES[TEXT])
    made.string_data.extend(_bytes(value) for value in item[STRINGS])
    return made


def _bytes(value: Json) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value[BYTES])


def _value_info(name: str, dtype: str, shape: Sequence[int | None] | None) -> ValueInfoProto:
    made = ValueInfoProto(name=name)
    made.type.tensor_type.elem_type = CODES[dtype]
    if shape is not None:
        made.type.tensor_type.shape.SetInParent()
        for axis, size in enumerate(shape):
            dim = made.type.tensor_type.shape.dim.add()
            if size is None:
                dim.dim_param = f"{name}.{axis}"
            else:
                dim.dim_value = size
    return made


def _declared(told: Mapping[str, Json], name: str) -> ValueInfoProto:
    """What goes in or out of a sub-graph, as far as it was told."""
    if TYPE in told:
        made = ValueInfoProto(name=name)
        made.type.ParseFromString(base64.b64decode(told[TYPE]))
        return made
    if told["type"] is None:
        return ValueInfoProto(name=name)
    return _value_info(name, told["type"], told["shape"])


def total_bytes(model: Model) -> int:
    """About how many bytes the weights take, each counted once."""
    weights = {weight.digest: weight for layer in model.layers for weight in layer.weights}
    return sum(4 * int(np.prod(weight.shape, dtype=np.int64)) for weight in weights.values())
