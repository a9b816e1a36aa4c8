"""Graphs with every tensor as an output, and each node of a graph as a graph of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import AttributeProto, ModelProto, NodeProto, ValueInfoProto

from outvote.core.arrays import Array
from outvote.core.batch import (
    CutGraphs,
    ExposeGraphs,
    GraphCase,
    GraphsCut,
    GraphsExposed,
    answers_in,
    cases_in,
    packed_cases,
)
from outvote.core.target import Outcome
from outvote.dialects.onnx.nouns.types import NAMES, carrier, is_narrow


def expose_graphs(request: ExposeGraphs) -> GraphsExposed:
    """The same graphs; what every node gives is an output, in the order of the nodes."""
    found = []
    for case in cases_in(request.cases):
        proto = ModelProto.FromString(case.content)
        del proto.graph.output[:]
        proto.graph.output.extend(ValueInfoProto(name=name) for name in _given(proto))
        found.append(GraphCase(proto.SerializeToString(), case.feeds))
    return GraphsExposed(cases=packed_cases(found))


def cut_graphs(request: CutGraphs) -> GraphsCut:
    """Nodes as graphs, fed with what `answers` say that the nodes before them gave."""
    cases = cases_in(request.cases)
    answers = answers_in(request.answers, len(cases))
    found, origins = [], []
    for number, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        if answer.outcome is Outcome.OK:
            for one in _nodes(case, answer.outputs):
                found.append(one)
                origins.append(number)
    return GraphsCut(cases=packed_cases(found), origins=tuple(origins))


def _nodes(case: GraphCase, given: Sequence[Array]) -> Iterator[GraphCase]:
    proto = ModelProto.FromString(case.content)
    inferred = onnx.shape_inference.infer_shapes(proto)
    graph = inferred.graph
    types = {
        value.name: value.type.tensor_type.elem_type
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    fed = [value.name for value in proto.graph.input]
    tensors = dict(zip((*fed, *_given(proto)), (*case.feeds, *given), strict=True))
    for node in proto.graph.node:
        alone = _alone(proto, node, tensors, types)
        if alone is not None:
            yield alone


def _alone(
    proto: ModelProto, node: NodeProto, tensors: Mapping[str, Array], types: Mapping[str, int]
) -> GraphCase | None:
    """A node as a graph; None where one of its tensors cannot be handed over."""
    names = [name for name in dict.fromkeys(node.input) if name in tensors]
    known = [name for name in (*names, *node.output) if name]
    if not all(_travels(types.get(name, 0)) for name in known):
        return None
    if any(tensors[name].dtype != carrier(NAMES[types[name]]) for name in names):
        return None  # the node before gives another type than it should: that is the finding
    made = ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import)
    made.graph.name = "cut"
    made.graph.node.append(node)
    held = set(node.input)
    made.graph.initializer.extend(t for t in proto.graph.initializer if t.name in held)
    for name in names:
        made.graph.input.append(_info(name, types[name], tensors[name]))
    for name in filter(None, node.output):
        made.graph.output.append(_info(name, types[name], tensors[name]))
    return GraphCase(
        made.SerializeToString(),
        [tensors[name] for name in names],
        tuple(node.op_type for name in node.output if name),
        _signature(node, types),
    )


def _travels(code: int) -> bool:
    name = NAMES.get(code, "string")
    return name == "bfloat16" or not (name == "string" or is_narrow(name))


def _info(name: str, code: int, array: Array) -> ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, code, array.shape)


def _given(proto: ModelProto) -> list[str]:
    return [name for node in proto.graph.node for name in node.output if name]


def _signature(node: NodeProto, types: Mapping[str, int]) -> str:
    """What tells causes apart at a glance: words among the attributes, names of others, types."""
    words = []
    for item in sorted(node.attribute, key=lambda item: item.name):
        is_word = item.type == AttributeProto.STRING
        words.append(f"{item.name}={item.s.decode()}" if is_word else item.name)
    read = [NAMES.get(types.get(name, 0), "constant") if name else "none" for name in node.input]
    return " ".join([node.op_type, *words, "of", *dict.fromkeys(read)])
