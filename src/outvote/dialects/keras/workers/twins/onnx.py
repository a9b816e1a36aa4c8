"""A model exported to ONNX by Keras, on ONNX Runtime with its optimiser off."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def transformed(name: str, model: Any, folder: Any) -> Any:
    import onnxruntime as ort

    path = str(Path(folder) / "model.onnx")
    model.export(path, format="onnx", verbose=False)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]

    def run(arrays: Any) -> Any:
        return session.run(None, dict(zip(names, arrays, strict=True)))

    return run
