"""Where ONNX says what an operator does, and what its checker says of a graph."""

from __future__ import annotations

from dataclasses import replace

from outvote.core.model import Layer
from outvote.core.specimen import Specimen
from outvote.dialects.onnx.nouns.node import operator_of, origin_of
from outvote.dialects.onnx.nouns.requests import InferForms
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled

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


def refusal(pool: Pool, worker: str, specimen: Specimen) -> str | None:
    """What ONNX' checker and shape inference have against a graph that is fed these tensors."""
    fed = zip(specimen.model.inputs, specimen.inputs, strict=True)
    inputs = tuple(replace(item, shape=array.shape) for item, array in fed)
    run = ask_settled(pool, worker, InferForms(model=replace(specimen.model, inputs=inputs)))
    return run.message if run.refused else None
