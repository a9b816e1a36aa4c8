"""Faults planted in PyTorch: in ATen's kernels, in its decompositions, in Inductor's lowerings.

The environment says which: `OUTVOTE_PLANTED=kernels`, `decompositions`, `lowerings`, `converter`.
"""

from __future__ import annotations

import os
from typing import Any

import torch

aten = torch.ops.aten
KEPT: list[Any] = []  # libraries live as long as somebody holds them


def kernels() -> None:
    """Softmax sums to a little more than one."""
    library = torch.library.Library("aten", "IMPL")
    KEPT.append(library)

    def softmax(x: Any, dim: int, half_to_float: bool) -> Any:
        raised = torch.exp(x - x.amax(dim, keepdim=True))
        return raised / raised.sum(dim, keepdim=True) * 1.01

    library.impl("_softmax", softmax, "CPU")


def decompositions() -> None:
    """SiLU's sigmoid is a little too steep."""
    tables = torch._decomp.global_decomposition_table["post_autograd"]

    def silu(x: Any) -> Any:
        return x * torch.sigmoid(x * 1.05)

    tables[aten.silu.default] = silu


def lowerings() -> None:
    """Inductor's relu leaks."""
    from torch._inductor import lowering

    table = lowering.lowerings
    plain = table[aten.relu.default]

    def relu(x: Any) -> Any:
        return table[aten.maximum.default](x, table[aten.mul.Tensor](x, 0.01))

    assert plain is not relu
    table[aten.relu.default] = relu


def converter() -> None:
    """The converter takes gelu for relu."""
    import openvino as ov

    convert = ov.convert_model

    def convert_model(program: Any, *args: Any, **more: Any) -> Any:
        for node in program.graph.nodes:
            if node.target in (aten.gelu.default,):
                node.target, node.kwargs = aten.relu.default, {}
        return convert(program, *args, **more)

    ov.convert_model = convert_model


{f.__name__: f for f in (kernels, decompositions, lowerings, converter)}[
    os.environ["OUTVOTE_PLANTED"]
]()
