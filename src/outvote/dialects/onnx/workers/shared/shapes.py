"""What shape inference tells of a graph: shapes and types, and where the batch lies."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import ModelProto, ValueInfoProto

from outvote.core.protocol import Form
from outvote.dialects.onnx.nouns.types import CODES, NAMES

Shape = list[int | None]
_BATCH = "outvote's batch"  # the name that the batch gets while shapes are inferred


@dataclass(frozen=True)
class TensorFacts:
    """What is known of one tensor."""

    shape: Shape | None = None
    dtype: str | None = None
    batch: int | None = None  # the axis along which instances lie

    @property
    def form(self) -> Form | None:
        """Shape and type, where both are known; whether two free sizes are alike is not."""
        if self.shape is None or self.dtype is None:
            return None
        if any(n is None and axis != self.batch for axis, n in enumerate(self.shape)):
            return None
        return tuple(self.shape), self.dtype


UNKNOWN = TensorFacts()


def known_shapes(proto: ModelProto) -> dict[str, TensorFacts]:
    """Every tensor that inference can tell something of, by name.

    The batch is the free first dimension of the inputs, wherever it gets to. A model without
    free dimensions, whose inputs and outputs begin with a dimension of one, takes one instance
    at a time. Where some output has no batch, nothing has: instances cannot be told apart there.
    """
    marked = ModelProto()
    marked.CopyFrom(proto)
    _mark_batch(marked)
    try:
        inferred = onnx.shape_inference.infer_shapes(marked, data_prop=True)
    except Exception:  # whatever is wrong with the model is told by who runs it
        inferred = marked
    graph = inferred.graph
    found = {
        value.name: _known(value) for value in (*graph.input, *graph.value_info, *graph.output)
    }
    ends = [value.name for value in (*graph.input, *graph.output)]
    if all(found[value.name].batch is not None for value in graph.output):
        return found
    plain = {name: TensorFacts(known.shape, known.dtype) for name, known in found.items()}
    if any(_has_one(known) is False for name, known in plain.items() if name in ends):
        return plain
    return plain | {name: TensorFacts(plain[name].shape, plain[name].dtype, 0) for name in ends}


def announce_outputs(proto: ModelProto) -> None:
    """Say of every output what inference knows of it: ONNX' checker takes no graph without."""
    known = known_shapes(proto)
    for value in proto.graph.output:
        found = known.get(value.name, UNKNOWN)
        if value.HasField("type") or found.dtype is None or found.shape is None:
            continue
        value.type.tensor_type.elem_type = CODES[found.dtype]
        value.type.tensor_type.shape.SetInParent()
        for size in found.shape:
            dim = value.type.tensor_type.shape.dim.add()
            if size is not None:
                dim.dim_value = size


def _has_one(known: TensorFacts) -> bool:
    """Whether a tensor holds a single instance, and nothing about it is free."""
    return known.shape is not None and None not in known.shape and known.shape[:1] == [1]


def _mark_batch(proto: ModelProto) -> None:
    """Give the free first dimension of the inputs a name by which it is known everywhere."""
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value for value in proto.graph.input if value.name not in constants]
    first = [value.type.tensor_type.shape.dim[:1] for value in inputs]
    free = [dim for dims in first for dim in dims if not dim.HasField("dim_value")]
    if not free:
        return
    name = free[0].dim_param
    for dim in free:
        if dim.dim_param == name:
            dim.dim_param = _BATCH
    if name:
        for value in (*inputs, *proto.graph.value_info, *proto.graph.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param == name:
                    dim.dim_param = _BATCH


def _known(value: ValueInfoProto) -> TensorFacts:
    held = value.type.tensor_type
    dtype = NAMES.get(held.elem_type)
    if not held.HasField("shape"):
        return TensorFacts(None, dtype)
    shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in held.shape.dim]
    axes = [axis for axis, dim in enumerate(held.shape.dim) if dim.dim_param == _BATCH]
    return TensorFacts(shape, dtype, axes[0] if len(axes) == 1 else None)
