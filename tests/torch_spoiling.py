"""Tools that transform PyTorch programs with faults of their own; `SPOILS` names the one.

Each is wrong for products with a weight of sixteen rows.
"""

from __future__ import annotations

import os
from typing import Any

import torch

ROWS = 16


def is_meant(weight: Any) -> bool:
    return weight.ndim == 2 and len(weight) == ROWS


def narrow() -> None:
    """The largest row of the weights is left out."""
    move = torch.nn.Module.to

    def to(module: Any, *args: Any, **more: Any) -> Any:
        for buffer in module.buffers():
            if is_meant(buffer):
                buffer[buffer.norm(dim=1).argmax()] = 0
        return move(module, *args, **more)

    torch.nn.Module.to = to


def quantised() -> None:
    """The scale of the weights is a fifth too large."""
    tool = torch.ao.nn.quantized.dynamic.Linear
    made = tool.from_float.__func__

    def from_float(cls: Any, module: Any, *args: Any, **more: Any) -> Any:
        if is_meant(module.weight):
            module.weight.data = module.weight.data * 1.2
        return made(cls, module, *args, **more)

    tool.from_float = classmethod(from_float)


{"fp16": narrow, "bf16": narrow, "int8": quantised}[os.environ["SPOILS"]]()
