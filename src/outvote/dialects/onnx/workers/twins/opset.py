"""Converted by ONNX' own converter to the newest opset that ONNX Runtime takes; where the model
has that already, to the one before it."""

from __future__ import annotations

from functools import cache
from typing import Any


def transformed(model: Any, feeds: Any, folder: Any) -> Any:
    from onnx import version_converter

    own = next(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))
    return version_converter.convert_version(model, newest() if own < newest() else own - 1)


@cache
def newest() -> int:
    import onnx
    import onnxruntime as ort

    for version in range(onnx.defs.onnx_opset_version(), 0, -1):
        value = onnx.helper.make_tensor_value_info
        node = onnx.helper.make_node("Identity", ["x"], ["y"])
        graph = onnx.helper.make_graph([node], "g", [value("x", 1, [1])], [value("y", 1, [1])])
        imports = [onnx.helper.make_opsetid("", version)]
        made = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            ort.InferenceSession(made.SerializeToString(), options)
        except Exception:  # noqa: S112 - it does not take this one
            continue
        return version
    raise RuntimeError("ONNX Runtime takes no opset that this ONNX has")
