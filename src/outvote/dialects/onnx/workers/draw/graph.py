"""Whole graphs of a few nodes, each reading what another one gives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from onnx import ModelProto

from outvote.core.arrays import Array
from outvote.core.batch import GraphCase, GraphsDrawn, packed_cases
from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.dialects.onnx.workers.draw.node import NodeDraw
from outvote.dialects.onnx.workers.draw.sketch import (
    Accept,
    Sketch,
    Unfit,
    Value,
    all_known,
    anything,
)
from outvote.dialects.onnx.workers.draw.table import drawable, drawer_of, readers_of

_TRIES = 200  # nodes that do not fit, before a graph is left as it is
_LATEST = 0.6  # of the nodes read what the one before them gives


@dataclass(frozen=True)
class DrawnGraph:
    """A graph, and numbers for its inputs."""

    proto: ModelProto
    feeds: Sequence[Array]
    refused: int  # nodes that inference would not have


def draw_graph(opset: int, seed: int, nodes: int, kinds: Sequence[str] = ()) -> DrawnGraph:
    """A graph of so many nodes; of these kinds, if any are named. Same seed, same graph."""
    sketch = Sketch(opset, seed)
    refused = 0
    while len(sketch.nodes) < nodes and refused < _TRIES:
        try:
            link = _link(sketch)
            last = len(sketch.nodes) == nodes - 1
            draw_node(sketch, link, kinds, anything if link or last else all_known)
        except Unfit:
            refused += 1
    return DrawnGraph(sketch.model(), sketch.feeds(), refused)


def draw_node(
    sketch: Sketch, link: Value | None, kinds: Sequence[str] = (), accept: Accept = anything
) -> list[Value]:
    """A node of any kind that reads the link; raises Unfit where what is drawn does not fit."""
    fitting = drawable(sketch.opset) if link is None else readers_of(sketch.opset, link.dtype)
    wanted = [kind for kind in fitting if kind in kinds] if kinds else fitting
    if not wanted:
        raise Unfit("no operator reads that")
    kind = wanted[int(sketch.rng.random() * len(wanted))]
    draw = NodeDraw(sketch, kind, link)
    return draw.added(drawer_of(kind)(draw), accept)


def _link(sketch: Sketch) -> Value | None:
    """What the next node has to read: mostly what the last one gives."""
    computed = [value for value in sketch.values if value.computed and value.is_known]
    if not computed:
        return None
    if sketch.rng.random() < _LATEST:
        return computed[-1]
    return computed[int(sketch.rng.random() * len(computed))]


def draw_graphs(request: DrawGraphs) -> GraphsDrawn:
    """Packed graphs of consecutive numbers."""
    found: list[GraphCase] = []
    refused = 0
    for number in range(request.first, request.first + request.count):
        chance = random.Random(f"{request.seed} {number}")  # noqa: S311 - no secret
        nodes = chance.randint(request.least, request.most)
        opset = chance.choice(request.opsets)
        graph = draw_graph(opset, chance.getrandbits(48), nodes, request.kinds)
        refused += graph.refused
        leaves = _leaves(graph.proto)
        found.append(GraphCase(graph.proto.SerializeToString(), graph.feeds, leaves))
    return GraphsDrawn(cases=packed_cases(found), refused=refused)


def _leaves(proto: ModelProto) -> tuple[str, ...]:
    makers = {name: node.op_type for node in proto.graph.node for name in node.output}
    return tuple(makers[value.name] for value in proto.graph.output)
