"""Optimised and saved by ONNX Runtime, as far as the result runs on every machine (extended)."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def transformed(model: Any, feeds: Any, folder: Any) -> Any:
    import onnx
    import onnxruntime as ort

    path = Path(folder) / "optimised.onnx"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)
