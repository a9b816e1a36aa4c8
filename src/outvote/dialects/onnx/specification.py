"""Where ONNX says what an operator does."""

from __future__ import annotations

from outvote.core.model import Layer
from outvote.dialects.onnx.nouns.node import operator_of, origin_of

_ONNX = "https://onnx.ai/onnx/operators"
_ONNXRUNTIME = "https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md"
_DOMAINS = {
    "": "_",
    "ai.onnx.ml": "_aionnxml",
    "ai.onnx.preview.training": "_aionnxpreviewtraining",
}


def link(layer: Layer) -> str | None:
    """The page of a node's operator; None where a model brings it itself, or nobody wrote one."""
    domain, operator = operator_of(layer.kind)
    own = {(told.get("domain", ""), told.get("name", "")) for told in origin_of(layer).functions}
    if (domain, operator) in own:
        return None
    if domain == "com.microsoft":
        return f"{_ONNXRUNTIME}#com.microsoft.{operator}"
    place = _DOMAINS.get(domain)
    if place is None:
        return None
    return f"{_ONNX}/onnx{place}_{operator}.html"
