"""Converters that write wrong numbers: a scale that is a fifth too large, or a bias forgotten."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import onnxruntime.quantization as quantization
import onnxruntime.transformers.float16 as float16
from onnx import numpy_helper

WEIGHT, BIAS = "w2", "b2"


def spoilt(model: Any) -> Any:
    """The model with the fault that the environment names."""
    wrong_scale = os.environ["SPOILS"] == "scale"
    for tensor in model.graph.initializer:
        is_scale = tensor.name in (WEIGHT, f"{WEIGHT}_scale") and tensor.data_type != 3
        if is_scale if wrong_scale else tensor.name.startswith(BIAS) and "scale" not in tensor.name:
            array = numpy_helper.to_array(tensor)
            changed = array * np.array(1.2 if wrong_scale else 0, array.dtype)
            tensor.CopyFrom(numpy_helper.from_array(changed, tensor.name))
    return model


def in_file(convert: Any) -> Any:
    def converted(model: Any, path: Any, *args: Any, **more: Any) -> None:
        convert(model, path, *args, **more)
        onnx.save(spoilt(onnx.load(path)), path)

    return converted


honest = float16.convert_float_to_float16
quantization.quantize_dynamic = in_file(quantization.quantize_dynamic)
quantization.quantize_static = in_file(quantization.quantize_static)
float16.convert_float_to_float16 = lambda *args, **more: spoilt(honest(*args, **more))
