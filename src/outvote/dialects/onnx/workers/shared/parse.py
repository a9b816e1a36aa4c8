"""The message that an `.onnx` file holds. It is untrusted, so it is looked at first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx
import onnx_ir as ir

from outvote.worker.main import Refused

_DEEPEST = 16  # sub-graphs inside sub-graphs


def parsed(name: str, content: bytes) -> onnx.ModelProto:
    """The message that a file holds; what cannot be a model is refused."""
    try:
        proto = onnx.ModelProto.FromString(content)
    except Exception as error:
        raise Refused(f"{name} is not a readable ONNX file: {first_line(error)}") from error
    if not proto.graph.node and not proto.graph.output:
        raise Refused(f"{name} is not an ONNX model: it holds no graph")
    if any(_sparse_in(proto.graph, 0)):
        raise Refused(f"{name} holds sparse tensors, which are not supported; make them dense")
    return proto


def external_files(proto: onnx.ModelProto) -> tuple[str, ...]:
    """The files beside the model in which it keeps weights, by the names it gives them."""
    found = {
        entry.value: None
        for tensor in onnx.external_data_helper._get_all_tensors(proto)
        if tensor.data_location == onnx.TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return tuple(found)


def _sparse_in(graph: onnx.GraphProto, depth: int) -> Iterable[bool]:
    """Whether there are sparse tensors, which `onnx_ir` passes over; refuses endless nesting."""
    if depth > _DEEPEST:
        raise Refused(f"sub-graphs are nested more than {_DEEPEST} deep")
    yield bool(graph.sparse_initializer)
    for node in graph.node:
        for attribute in node.attribute:
            yield attribute.HasField("sparse_tensor") or bool(attribute.sparse_tensors)
            inner = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
            for found in inner:
                yield from _sparse_in(found, depth + 1)


def check_ends(graph: onnx.GraphProto) -> None:
    """Refuse inputs and outputs that are no tensors; hints of maps, unknown to `onnx_ir`, go."""
    ends = [("input", v) for v in graph.input] + [("output", v) for v in graph.output]
    for side, value in ends:
        kind = value.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            raise Refused(
                f"the {side} {value.name!r} is {_called(value.type)}; only tensors can be given "
                f"and compared: take it from the graph's {side}s"
            )
    hints = [value for value in graph.value_info if "map" not in _called(value.type)]
    del graph.value_info[:]
    graph.value_info.extend(hints)


def _called(kind: onnx.TypeProto) -> str:
    """A type in words."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            inner = _called(kind.sequence_type.elem_type)
            return f"a sequence of {inner.split(' ', 1)[-1]}s"
        case "optional_type":
            return "an optional"
        case "map_type":
            return "a map"
        case "sparse_tensor_type":
            return "a sparse tensor"
    return "a tensor"


def understood(proto: onnx.ModelProto, name: str) -> ir.Model:
    try:
        return ir.from_proto(proto)
    except Exception as error:
        raise Refused(f"{name} is not a valid ONNX model: {first_line(_cause(error))}") from error


def _cause(error: BaseException) -> BaseException:
    """What an error began with: `onnx_ir` wraps one around the other."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return error


def fix_dims(proto: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Give free dimensions the sizes that the user chose, wherever the name stands.

    Some exporters write -1 for what is free.
    """
    left = set(dims)
    values = [*proto.graph.input, *proto.graph.output, *proto.graph.value_info]
    for value in values:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
            if dim.dim_param in dims and value in proto.graph.input:
                left.discard(dim.dim_param)
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    if left:
        free = sorted(
            {d.dim_param for v in proto.graph.input for d in v.type.tensor_type.shape.dim} - {""}
        )
        known = f"free are {', '.join(free)}" if free else "none is free by name"
        raise Refused(f"the inputs have no dimension {sorted(left)[0]!r}; {known}")


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
