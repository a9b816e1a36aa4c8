"""ONNX Runtime's kernels, by PyTorch's own exporter of programs to ONNX."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import onnxruntime as ort
import torch

from outvote.dialects.torch_export.workers.shared.engine import Program
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context

_GAPS = re.compile(
    r"No (ONNX function|decompositions?) (found|registered)|NOT_IMPLEMENTED|NotImplemented|"
    r"[Nn]ot supported|[Uu]nsupported|is not a registered function/op"
)
_SILENT = 4


def create(context: Context) -> TorchWorker:
    return TorchWorker(context, ConvertedToOnnx())


class ConvertedToOnnx:
    """One session for each graph and each form of its inputs, its graph optimiser switched off."""

    libraries: tuple[str, ...] = ("onnxscript", "onnxruntime")
    precision: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self._options = ort.SessionOptions()
        self._options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self._options.intra_op_num_threads = self._options.inter_op_num_threads = 1
        self._options.log_severity_level = _SILENT

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        if any(tensor.dtype == torch.bfloat16 for tensor in examples):
            raise NotImplementedError("bfloat16 is not given to ONNX Runtime from Python")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, about its own parts
            program = torch.export.export(module, tuple(examples))
            made = torch.onnx.export(program, dynamo=True, verbose=False)
        session = ort.InferenceSession(
            made.model_proto.SerializeToString(), self._options, providers=["CPUExecutionProvider"]
        )
        names = [item.name for item in session.get_inputs()]
        if len(names) != len(examples):
            raise NotImplementedError("an input that nothing reads was dropped on the way to ONNX")
        if any("bfloat16" in item.type for item in session.get_outputs()):
            raise NotImplementedError("bfloat16 is not taken from ONNX Runtime by Python")

        def run(*tensors: Any) -> Sequence[Any]:
            given = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
            return [torch.from_numpy(array) for array in session.run(None, given)]

        return run

    def is_gap(self, error: Exception) -> bool:
        causes = [error, error.__cause__, error.__context__]
        told = [f"{type(cause).__name__}: {cause}" for cause in causes if cause is not None]
        return any(_GAPS.search(text) for text in told)
