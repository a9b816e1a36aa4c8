"""Turns an `.onnx` file into neutral data: nodes become layers, constants their weights."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from outvote.core.arrays import TEXT, Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Json, Layer, Model, Ref, Weight
from outvote.core.protocol import Form
from outvote.dialects.onnx.nouns.node import (
    ATTRIBUTE,
    BYTES,
    EMPTY,
    GRAPH,
    STRINGS,
    TYPE,
    WEIGHT,
    Origin,
    kind_of,
    ref,
    with_origin,
)
from outvote.dialects.onnx.nouns.types import NAMES, from_raw, is_narrow, widened
from outvote.dialects.onnx.workers.shared.parse import (
    check_ends,
    first_line,
    fix_dims,
    parsed,
    understood,
)
from outvote.dialects.onnx.workers.shared.shapes import UNKNOWN, Shape, TensorFacts, known_shapes
from outvote.worker.main import Refused
from outvote.worker.names import named_once

Specs = dict[str, tuple[Form, ...]]  # what each layer gives, where all of it is known
Types = ir.AttributeType
_LISTS = (Types.INTS, Types.FLOATS, Types.STRINGS, Types.TENSORS, Types.GRAPHS)


@dataclass(frozen=True)
class ReadModel:
    """A model file as plain data: the graph, and the shapes of its outputs and layers."""

    model: Model
    output_shapes: list[Shape]
    specs: Specs


def read(
    name: str,
    content: bytes,
    blobs: BlobStore,
    dims: Mapping[str, int],
    beside: Mapping[str, Array],
) -> ReadModel:
    """Read a file; weights go to the blob store. Free dimensions are set by name.

    `beside` are the bytes of the files that `external_files` told.
    """
    proto = parsed(name, content)
    check_ends(proto.graph)
    fix_dims(proto, dims)
    model = understood(proto, name)
    return _Reader(model, blobs, name, known_shapes(proto), beside).read()


class _Reader:
    def __init__(
        self,
        model: ir.Model,
        blobs: BlobStore,
        name: str,
        shapes: Mapping[str, TensorFacts],
        beside: Mapping[str, Array],
    ) -> None:
        self._graph = model.graph
        self._functions = model.functions
        self._opset = dict(model.opset_imports)
        self._ir = model.ir_version
        self._blobs = blobs
        self._name = name
        self._beside = beside
        self._shapes = shapes
        self._names: set[str] = set()
        self._refs: dict[ir.Value, Ref] = {}
        self._constants: dict[ir.Value, ir.TensorProtocol] = {}
        self._put: dict[int, tuple[ir.TensorProtocol, Weight, str]] = {}

    def read(self) -> ReadModel:
        graph = self._graph
        if not graph.outputs:
            raise Refused(f"{self._name}: the graph has no output")
        self._constants = {
            value: value.const_value
            for value in graph.initializers.values()
            if value.const_value is not None
        }
        inputs = tuple(self._input(v) for v in graph.inputs if v not in self._constants)
        shown = set(graph.outputs)
        layers: list[Layer] = []
        specs: Specs = {}
        for node in graph:
            constant = _constant_of(node)
            if constant is not None and node.outputs[0] not in shown:
                self._constants[node.outputs[0]] = constant
                continue
            layer = self._layer(node)
            layers.append(layer)
            forms = [self._known(value).form for value in node.outputs if value.name]
            if None not in forms:
                specs[layer.name] = tuple(form for form in forms if form is not None)
        layers += [self._passed_on(value) for value in graph.outputs if value not in self._refs]
        self._check_outputs()
        outputs = tuple(self._refs[value] for value in graph.outputs)
        name = graph.name or self._name
        model = Model(name, inputs, tuple(layers), outputs, dialect="onnx")
        told = [self._known(value).shape or [None] for value in graph.outputs]
        return ReadModel(model, told, specs)

    def _known(self, value: ir.Value) -> TensorFacts:
        return self._shapes.get(value.name or "", UNKNOWN)

    def _input(self, value: ir.Value) -> Input:
        name = named_once(self._names, value.name or "input")
        self._refs[value] = Ref(name)
        dtype = self._tensor_type(value, f"the input {value.name!r}")
        if value.shape is None:
            raise Refused(f"the input {value.name!r} has no shape, not even a number of dimensions")
        shape = tuple(n if isinstance(n, int) else None for n in value.shape)
        return Input(name, shape, dtype, self._known(value).batch)

    def _tensor_type(self, value: ir.Value, what: str) -> str:
        """The name of a tensor's type."""
        if value.dtype is None:
            raise Refused(f"{what} has no type")
        if value.dtype == ir.DataType.STRING:
            return TEXT
        return _type_name(value.dtype, what)

    def _check_outputs(self) -> None:
        for value in self._graph.outputs:
            if value.type is not None and value.dtype is not None:
                self._tensor_type(value, f"the output {value.name!r}")

    def _layer(self, node: ir.Node) -> Layer:
        label = named_once(
            self._names, node.name or (node.outputs[0].name if node.outputs else "") or "node"
        )
        encoder = _Encoder(self)
        args = [encoder.argument(value) for value in node.inputs]
        config = {name: encoder.attribute(found) for name, found in node.attributes.items()}
        captured = {name: ref(r.producer, r.index) for name, r in encoder.captured.items()}
        kept = [i for i, value in enumerate(node.outputs) if value.name]
        for index, place in enumerate(kept):
            self._refs[node.outputs[place]] = Ref(label, index)
        functions = [encoder.function(f) for f in self._functions_of(node)]
        layer = Layer(
            label,
            _kind(node),
            config,
            args,
            captured,
            weights=tuple(encoder.weights),
            batch=tuple(self._known(node.outputs[place]).batch for place in kept),
        )
        return with_origin(layer, Origin(self._opset, self._ir, tuple(kept), functions))

    def _functions_of(self, node: ir.Node) -> list[ir.Function]:
        """The model's own functions that a node calls, directly or through others."""
        found: dict[tuple[str, str, str], ir.Function] = {}
        todo = [node]
        while todo:
            one = todo.pop()
            key = one.op_identifier()
            if key in self._functions and key not in found:
                found[key] = self._functions[key]
                todo += list(found[key].all_nodes())
            todo += [inner for graph in _graphs_of(one) for inner in graph.all_nodes()]
        return list(found.values())

    def _passed_on(self, value: ir.Value) -> Layer:
        """An output that no node makes, a constant: a node that passes it on."""
        if value not in self._constants:
            raise Refused(f"no node computes the output {value.name!r}")
        label = named_once(self._names, value.name or "output")
        encoder = _Encoder(self)
        argument = encoder.argument(value)
        self._refs[value] = Ref(label)
        weights = tuple(encoder.weights)
        layer = Layer(label, "Identity", {}, [argument], weights=weights, batch=(None,))
        return with_origin(layer, Origin(self._opset, self._ir))

    def known(self, value: ir.Value) -> Ref | None:
        return self._refs.get(value)

    def constant(self, value: ir.Value) -> ir.TensorProtocol | None:
        return self._constants.get(value)

    def weight(self, tensor: ir.TensorProtocol, name: str) -> tuple[Weight, str]:
        """A constant in the blob store; the same one is stored once."""
        if id(tensor) not in self._put:
            array, dtype = self._array(tensor, name)
            weight = Weight(name, self._blobs.put(array), tuple(array.shape))
            self._put[id(tensor)] = (tensor, weight, dtype)
        return self._put[id(tensor)][1:]

    def _array(self, tensor: ir.TensorProtocol, name: str) -> tuple[Array, str]:
        what = f"the constant {name!r}"
        dtype = _type_name(tensor.dtype, what)
        shape = [n if isinstance(n, int) else -1 for n in tensor.shape]
        if any(n < 0 for n in shape):
            raise Refused(f"{what} has the shape {shape}")
        if isinstance(tensor, ir.ExternalTensor):
            array = self._from_beside(tensor, dtype, what)
        else:
            _check_inline(tensor, what)
            try:
                array = np.asarray(tensor.numpy())
            except (ValueError, AssertionError) as error:
                raise Refused(f"{what} could not be read: {first_line(error)}") from error
        return array if dtype == "bfloat16" else widened(array), dtype

    def _from_beside(self, tensor: ir.ExternalTensor, dtype: str, what: str) -> Array:
        """A constant in another file; it is mapped, and nothing is allocated for what is not."""
        location = str(tensor.location)
        held = self._beside.get(location)
        if held is None:
            raise Refused(f"{what} lies in the file {location}, which was not given")
        offset, size = tensor.offset or 0, tensor.nbytes
        length = size if tensor.length is None else tensor.length
        if offset < 0 or length != size or offset + size > held.size:
            raise Refused(
                f"{what} takes {size:,} bytes; its file {location} does not hold them at {offset:,}"
            )
        shape = [int(n) for n in tensor.shape]  # type: ignore[arg-type, unused-ignore]
        return from_raw(held[offset : offset + size], dtype, shape)


@dataclass
class _Encoder:
    """Arguments and attributes of one node as plain data; collects its constants."""

    reader: _Reader
    weights: list[Weight] = field(default_factory=list)
    captured: dict[str, Ref] = field(default_factory=dict)
    _inner: set[ir.Value] = field(default_factory=set)  # made inside a sub-graph of the node

    def argument(self, value: ir.Value | None) -> Json:
        """What a node reads: a tensor, a constant, or nothing."""
        if value is None or not value.name:
            return None
        known = self.reader.known(value)
        if known is not None:
            return ref(known.producer, known.index)
        tensor = self.reader.constant(value)
        if tensor is None:
            raise Refused(f"a node reads {value.name!r}, which nothing computes before it")
        return self.constant(tensor, value.name)

    def constant(self, tensor: ir.TensorProtocol, name: str) -> Json:
        if tensor.dtype == ir.DataType.STRING:
            return _strings(tensor, f"the constant {name!r}")
        weight, dtype = self.reader.weight(tensor, name)
        place = self.weights.index(weight) if weight in self.weights else len(self.weights)
        if place == len(self.weights):
            self.weights.append(weight)
        return {WEIGHT: place, "type": dtype} if is_narrow(dtype) else {WEIGHT: place}

    def attribute(self, found: ir.Attr) -> Json:
        if found.is_ref():
            return {ATTRIBUTE: found.ref_attr_name, "type": found.type.name}
        value = found.value
        if found.type in _LISTS and not len(value):
            return {EMPTY: found.type.name}
        match found.type:
            case Types.INT:
                return int(value)
            case Types.FLOAT:
                return float(value)
            case Types.STRING:
                return _text(value)
            case Types.INTS:
                return [int(one) for one in value]
            case Types.FLOATS:
                return [float(one) for one in value]
            case Types.STRINGS:
                return [_text(one) for one in value]
            case Types.TENSOR:
                return self.constant(value, value.name or found.name)
            case Types.TENSORS:
                return [self.constant(one, one.name or found.name) for one in value]
            case Types.GRAPH:
                return {GRAPH: self.graph(value)}
            case Types.GRAPHS:
                return [{GRAPH: self.graph(one)} for one in value]
            case Types.TYPE_PROTO:
                return {TYPE: _protobuf(value)}
        raise Refused(f"the attribute {found.name!r} is of type {found.type.name}: not supported")

    def graph(self, graph: ir.Graph) -> Json:
        """A sub-graph; what it reads from outside is noted, constants of outside come in."""
        initializers = {
            value.name: self.constant(value.const_value, value.name or "")
            for value in graph.initializers.values()
            if value.const_value is not None
        }
        self._inner |= set(graph.initializers.values()) | set(graph.inputs)
        nodes = [self.node(node, initializers) for node in graph]
        for value in graph.outputs:
            self._named(value, initializers)
        return {
            "inputs": [_signature(value) for value in graph.inputs],
            "outputs": [_signature(value) for value in graph.outputs],
            "initializers": initializers,
            "nodes": nodes,
        }

    def node(self, node: ir.Node, initializers: dict[Any, Json] | None = None) -> Json:
        """A node inside a sub-graph or a function: its tensors have names."""
        inputs = [self._named(value, initializers) for value in node.inputs]
        attributes = {name: self.attribute(found) for name, found in node.attributes.items()}
        self._inner |= set(node.outputs)
        return {
            "kind": _kind(node),
            "name": node.name or "",
            "inputs": inputs,
            "outputs": [value.name or "" for value in node.outputs],
            "attributes": attributes,
        }

    def _named(self, value: ir.Value | None, initializers: dict[Any, Json] | None) -> str:
        if value is None or not value.name:
            return ""
        if value in self._inner or initializers is None:
            return str(value.name)
        known = self.reader.known(value)
        if known is not None:
            self.captured[value.name] = known
            return str(value.name)
        tensor = self.reader.constant(value)
        if tensor is None:
            raise Refused(f"a sub-graph reads {value.name!r}, which nothing computes before it")
        if value.name not in initializers:
            initializers[value.name] = self.constant(tensor, value.name)
        return str(value.name)

    def function(self, function: ir.Function) -> Json:
        """A function that the model defines; its body is closed."""
        self._inner |= set(function.inputs)
        return {
            "domain": function.domain,
            "name": function.name,
            "overload": function.overload,
            "opset": dict(function.opset_imports),
            "inputs": [value.name for value in function.inputs],
            "outputs": [value.name for value in function.outputs],
            "attributes": {
                name: None if found.value is None else self.attribute(found)
                for name, found in function.attributes.items()
            },
            "nodes": [self.node(node) for node in function],
        }


def _constant_of(node: ir.Node) -> ir.TensorProtocol | None:
    """The tensor that a Constant node gives; None for other nodes."""
    if (node.domain, node.op_type) not in (("", "Constant"), ("ai.onnx", "Constant")):
        return None
    found = next(iter(node.attributes.values()), None)
    if found is None or found.is_ref():
        return None
    match found.name:
        case "value":
            return found.value
        case "value_float" | "value_floats":
            return ir.tensor(np.array(found.value, np.float32), name=node.outputs[0].name)
        case "value_int" | "value_ints":
            return ir.tensor(np.array(found.value, np.int64), name=node.outputs[0].name)
    return None


def _graphs_of(node: ir.Node) -> list[ir.Graph]:
    found: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == Types.GRAPH:
            found.append(attribute.value)
        elif attribute.type == Types.GRAPHS:
            found += attribute.value
    return found


def _kind(node: ir.Node) -> str:
    if not node.op_type or "::" in node.op_type or "::" in node.domain:
        raise Refused(f"{node.op_type!r} of the domain {node.domain!r} is no name of an operator")
    if node.overload:
        raise Refused(f"the function {node.op_type!r} has overloads, which are not supported")
    return kind_of(node.domain, node.op_type)


def _type_name(dtype: ir.DataType, what: str) -> str:
    name = NAMES.get(int(dtype))
    if name is None:
        raise Refused(f"{what} is of type {dtype.name.lower()}, which is not supported")
    return name


def _signature(value: ir.Value) -> Json:
    """Name, type and shape of what goes in or out of a sub-graph, as far as they are told."""
    told: dict[str, Json] = {"name": value.name, "type": None, "shape": None}
    if isinstance(value.type, ir.TensorType) and int(value.type.dtype) in NAMES:
        told["type"] = NAMES[int(value.type.dtype)]
        if value.shape is not None:
            told["shape"] = [n if isinstance(n, int) else None for n in value.shape]
    elif value.type is not None:
        told[TYPE] = _protobuf(ir.TypeAndShape(value.type, value.shape))
    return told


def _strings(tensor: ir.TensorProtocol, what: str) -> Json:
    if isinstance(tensor, ir.ExternalTensor):
        raise Refused(f"{what} holds texts in another file, which ONNX does not have")
    texts = [_text(one) for one in np.asarray(tensor.raw, object).reshape(-1)]
    shape = [int(n) for n in tensor.shape]
    if math.prod(shape) != len(texts) or min(shape, default=0) < 0:
        raise Refused(f"{what} announces {math.prod(shape):,} texts and does not hold them")
    return {STRINGS: texts, "shape": shape}


def _text(value: Any) -> Json:
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return {BYTES: base64.b64encode(bytes(value)).decode()}


def _protobuf(value: ir.TypeAndShape) -> str:
    proto = onnx.TypeProto()
    ir.serde.serialize_type_into(proto, value.type)
    if value.shape is not None:
        ir.serde.serialize_shape_into(proto, value.shape)
    return base64.b64encode(proto.SerializeToString()).decode()


def _check_inline(tensor: ir.TensorProtocol, what: str) -> None:
    """Whether the file holds as many numbers as the shape announces."""
    proto = getattr(tensor, "_proto", None)
    if not isinstance(proto, onnx.TensorProto):
        return
    count = math.prod(int(n) for n in tensor.shape)
    if proto.HasField("raw_data"):
        held, wanted = len(proto.raw_data), tensor.nbytes
    else:
        fields = (proto.float_data, proto.int32_data, proto.int64_data)
        more = (proto.double_data, proto.uint64_data, proto.string_data)
        held = max(map(len, (*fields, *more)))
        bits = int(tensor.dtype.bitwidth)
        wanted = -(-count * bits // 8) if bits < 8 else count
    if held != wanted:
        raise Refused(f"{what} announces {count:,} numbers and does not hold them")
