"""The tensor before the last squashing node, which AUDEE's fitness functions read."""

from __future__ import annotations

from outvote.core.model import Model, Ref

_SQUASHING = ("Softmax", "LogSoftmax", "Sigmoid", "HardSigmoid")


def logits_apart(model: Model) -> tuple[Model, Ref]:
    """The model as it is: what a squashing node reads is a tensor of the graph already."""
    end = model.outputs[0]
    layer = next((item for item in model.layers if item.name == end.producer), None)
    if layer is None or layer.kind not in _SQUASHING:
        return model, end
    return model, next(iter(layer.refs()), end)
