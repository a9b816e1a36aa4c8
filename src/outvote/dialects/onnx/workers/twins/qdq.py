"""Quantised by ONNX Runtime's tool, statically (QDQ), calibrated on the very inputs it is fed."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def transformed(model: Any, feeds: Any, folder: Any) -> Any:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = [feeds]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    path = Path(folder) / "qdq.onnx"
    quantize_static(model, path, Reader(), quant_format=QuantFormat.QDQ)
    return onnx.load(path)
