"""Keras on PyTorch: eager, or through TorchDynamo and Inductor (`torch:compile`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from outvote.core.arrays import Array
from outvote.workers.backends import Forward, Program, eager, to_arrays, to_tensor

libraries = ("torch",)


def before_import(mode: str) -> None:
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def after_import() -> None:
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    # Where Dynamo has to split a model, it must compile every piece instead of giving up.
    torch._dynamo.config.recompile_limit = 4096
    torch._dynamo.config.accumulated_recompile_limit = 4096


def precision(mode: str) -> dict[str, Any]:
    import torch

    return {"matmul": torch.get_float32_matmul_precision(), "mkldnn": torch.backends.mkldnn.enabled}


def set_wide(wide: bool) -> None:
    """PyTorch computes in float64 where it is asked to."""


def no_gradients() -> AbstractContextManager[Any]:
    import torch

    guard: AbstractContextManager[Any] = torch.no_grad()
    return guard


def compile_(forward: Forward, variables: Callable[[], list[Any]]) -> Program:
    import torch

    compiled = torch.compile(forward, dynamic=False)

    def program(feeds: Sequence[Array]) -> tuple[list[Array], list[str]]:
        return to_arrays(compiled([to_tensor(feed) for feed in feeds]))

    return program


modes = {"eager": eager, "compile": compile_}
