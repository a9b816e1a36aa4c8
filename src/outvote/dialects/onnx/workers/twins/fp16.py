"""Converted to float16 by ONNX Runtime's tool; what goes in and comes out keeps its type.

ONNX Runtime has few kernels for float16 on the CPU, and hands numbers on in float32 from node to
node: an Identity, of which it has one, behind every node holds them to float16.
"""

from __future__ import annotations

from typing import Any


def transformed(model: Any, feeds: Any, folder: Any) -> Any:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    found = convert_float_to_float16(model, keep_io_types=True)
    nodes = list(found.graph.node)
    del found.graph.node[:]
    for node in nodes:
        found.graph.node.append(node)
        if node.op_type != "Cast":
            held(found.graph, found.graph.node[-1])
    return found


def held(graph: Any, node: Any) -> None:
    for place, name in enumerate(node.output):
        if name:
            node.output[place] = f"{name} computed"
            graph.node.add(op_type="Identity", input=[f"{name} computed"], output=[name])
