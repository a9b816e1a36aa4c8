"""A simplifier that has faults of its own: planted in onnxsim, each for another operator."""

from __future__ import annotations

from typing import Any

import onnx
import onnxsim

simplified = onnxsim.simplify


def simplify(model: Any, *args: Any, **more: Any) -> Any:
    """Takes out Relu behind Conv, which it believes to have folded, and refuses Erf."""
    found, ok = simplified(model, *args, **more)
    convolved = {n.output[0] for n in found.graph.node if n.op_type == "Conv"}
    for node in found.graph.node:
        if node.op_type == "Relu" and node.input[0] in convolved:
            node.op_type = "Identity"
        if node.op_type == "Transpose":
            del node.attribute[:]
            node.attribute.append(onnx.helper.make_attribute("perm", [1, 0]))
        if node.op_type == "Erf":
            raise RuntimeError("this pass is broken")
    return found, ok


onnxsim.simplify = simplify
