"""XNNPACK's kernels, and ExecuTorch's own where that has none, by ExecuTorch's lowering."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.extension.pybindings.portable_lib import _load_for_executorch_from_buffer

from outvote.dialects.torch_export.workers.shared.engine import Program
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context

_GAPS = re.compile(
    r"SpecViolationError|Missing out variants|[Nn]ot supported|[Uu]nsupported|NotImplemented"
)


def create(context: Context) -> TorchWorker:
    return TorchWorker(context, LoweredToExecuTorch())


class LoweredToExecuTorch:
    """One program for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ("executorch",)
    precision: Mapping[str, Any] = {}

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the lowering, about its own parts
            program = torch.export.export(module, tuple(examples))
            lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
            written = lowered.to_executorch().buffer

        def run(*tensors: Any) -> Sequence[Any]:
            loaded = _load_for_executorch_from_buffer(written)  # it reads on in what it is given
            return [part.clone() for part in loaded.forward(list(tensors))]

        return run

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(f"{type(error).__name__}: {error}"))
