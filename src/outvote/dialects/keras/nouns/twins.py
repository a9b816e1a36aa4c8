"""What people make of Keras models: by what file, and what it computes in then."""

from __future__ import annotations

FILES = {
    **{"fp16": "narrow", "bf16": "narrow", "int8": "int8"},
    **{name: name for name in ("onnx", "openvino", "litert", "saved_model")},
}
PRECISION = {"fp16": "f16", "bf16": "bf16", "int8": "int8"}
