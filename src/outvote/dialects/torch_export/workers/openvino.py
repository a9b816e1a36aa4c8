"""OpenVINO's kernels, by its own converter of PyTorch programs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import openvino as ov
import torch

from outvote.dialects.torch_export.workers.shared.engine import Program
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context

_GAPS = re.compile(r"No conversion rule|not supported|[Uu]nsupported|OpConversionFailure")
_EXACT = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}


def create(context: Context) -> TorchWorker:
    return TorchWorker(context, ConvertedByOpenVino())


class ConvertedByOpenVino:
    """One compiled model for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ("openvino",)
    precision: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self._core = ov.Core()

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter, about PyTorch's own trees
            program = torch.export.export(module, tuple(examples))
            model = ov.convert_model(program)
        if len(model.inputs) != len(examples):
            raise NotImplementedError("OpenVINO dropped an input that nothing reads")
        if any(port.element_type == ov.Type.bf16 for port in (*model.inputs, *model.outputs)):
            raise NotImplementedError("NumPy has no bfloat16, by which OpenVINO is fed and read")
        model.reshape({i: list(x.shape) for i, x in enumerate(examples)})
        compiled = self._core.compile_model(model, "CPU", _EXACT)

        def run(*tensors: Any) -> Sequence[Any]:
            found = compiled([tensor.numpy() for tensor in tensors])
            return [torch.from_numpy(found[place].copy()) for place in range(len(found))]

        return run

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(f"{type(error).__name__}: {error}"))
