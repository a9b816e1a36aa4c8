"""Runs a small graph for bulk requests, just as it is written."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto

from outvote.core.batch import GraphCase
from outvote.core.model import Input
from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import NAMES
from outvote.dialects.onnx.workers.shared.assemble import Assembled
from outvote.dialects.onnx.workers.shared.runtime import Runtime


def run_graph(runtime: Runtime, case: GraphCase) -> Sequence[State]:
    """What a graph gives, as arrays say it; raises what the runtime raises."""
    graph = _assembled(case, runtime.free)
    pairs = zip(graph.inputs, case.feeds, strict=True)
    states = runtime.load(graph).run([State(array, None, i.dtype) for i, array in pairs])
    return [State(state.array) for state in states if state is not None]  # none is shown or gone


def _assembled(case: GraphCase, free: bool) -> Assembled:
    """The graph to be loaded; without sizes, where these are to be free."""
    proto = ModelProto.FromString(case.content)
    for value in (*proto.graph.input, *proto.graph.output) if free else ():
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}.{axis}"
    inputs = tuple(
        Input(value.name, tuple(array.shape), NAMES[value.type.tensor_type.elem_type], None)
        for value, array in zip(proto.graph.input, case.feeds, strict=True)
    )
    outputs = tuple(value.name for value in proto.graph.output)
    content = None if free else case.content
    return Assembled(proto, inputs, outputs, own=len(outputs), content=content)
