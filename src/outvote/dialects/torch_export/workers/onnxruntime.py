"""ONNX Runtime's kernels, by PyTorch's own exporter to ONNX; its graph optimiser is off."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Sequence
from typing import Any

import onnxruntime as ort
import torch

from outvote.dialects.torch_export.workers.shared.engine import Program
from outvote.dialects.torch_export.workers.shared.worker import TorchWorker
from outvote.worker.main import Context

_GAPS = re.compile(
    r"NOT_IMPLEMENTED|NotImplemented|No ONNX function found|No decompositions registered|"
    r"ConversionError|DispatchError|UnsupportedFxNode"
)
_SILENT = 4


def create(context: Context) -> TorchWorker:
    return TorchWorker(context, ConvertedToOnnx())


class ConvertedToOnnx:
    """One session for each graph and each form of its inputs."""

    libraries: tuple[str, ...] = ("onnxscript", "onnxruntime")

    def __init__(self) -> None:
        self._options = options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _SILENT

    def load(self, module: Any, examples: Sequence[Any]) -> Program:
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter, about PyTorch's own trees
            program = torch.onnx.export(module, tuple(examples), dynamo=True, verbose=False)
        proto = program.model_proto
        names = [item.name for item in proto.graph.input]
        if len(names) != len(examples):
            raise NotImplementedError("the exporter dropped an input that nothing reads")
        session = ort.InferenceSession(
            proto.SerializeToString(), self._options, providers=["CPUExecutionProvider"]
        )

        def run(*tensors: Any) -> Sequence[Any]:
            feeds = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
            return [torch.from_numpy(found) for found in map(_array, session.run(None, feeds))]

        return run

    def is_gap(self, error: Exception) -> bool:
        return bool(_GAPS.search(f"{type(error).__name__}: {error}"))


def _array(found: Any) -> Any:
    """An array that PyTorch may write over."""
    return found.copy() if hasattr(found, "copy") else found
