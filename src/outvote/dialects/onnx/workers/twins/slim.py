"""Slimmed by onnxslim: constants folded, nodes fused and taken out."""

from __future__ import annotations

from typing import Any


def transformed(model: Any, feeds: Any, folder: Any) -> Any:
    import onnxslim

    return onnxslim.slim(model)
