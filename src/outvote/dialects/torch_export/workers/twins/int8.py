"""A program quantised by `torch.ao.quantization.quantize_dynamic`: weights to int8, and tensors
while it runs. It knows modules, so that every product with constant weights is made one first;
everything else stays as it is."""

from __future__ import annotations

import platform
import warnings
from typing import Any


def transformed(name: str, module: Any, examples: Any) -> Any:
    import torch

    if platform.machine() not in ("x86_64", "AMD64"):  # PyTorch's default is for these alone
        torch.backends.quantized.engine = "qnnpack"
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.linear.default:
            given = [*node.args[1:], *node.kwargs.values()]
            held = [getattr(module, part.target) for part in given if is_constant(part)]
            if len(held) == len([part for part in given if part is not None]):
                put(module, node, *held)
    module.recompile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the tool will be replaced
        return torch.ao.quantization.quantize_dynamic(module, {torch.nn.Linear}, torch.qint8)


def is_constant(part: Any) -> bool:
    return part is not None and part.op == "get_attr"


def put(module: Any, node: Any, weight: Any, bias: Any = None) -> None:
    """A module in the place of a call."""
    import torch

    if weight.dtype != torch.float32:
        return
    made = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    made.weight.data = weight
    if bias is not None:
        made.bias.data = bias
    module.add_submodule(f"linear_{node.name}", made.eval())
    with module.graph.inserting_before(node):
        call = module.graph.call_module(f"linear_{node.name}", (node.args[0],))
    node.replace_all_uses_with(call)
    module.graph.erase_node(node)
