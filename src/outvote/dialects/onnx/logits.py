"""The tensor before the last squashing node, which AUDEE's fitness functions read."""

from __future__ import annotations

from dataclasses import replace

from outvote.core.cuts import owned
from outvote.core.model import Model, Ref

_SQUASHING = ("Softmax", "LogSoftmax", "Sigmoid", "HardSigmoid")


def logits_apart(model: Model) -> tuple[Model, Ref]:
    """The model as it is: what a squashing node reads is a tensor of the graph already."""
    end = model.outputs[0]
    layer = next((item for item in model.layers if item.name == end.producer), None)
    if layer is None or layer.kind not in _SQUASHING:
        return model, end
    return model, next(iter(layer.refs()), end)


def logits_model(model: Model) -> Model:
    """The model that ends at the logits, without the nodes that nothing needs then."""
    _, end = logits_apart(model)
    needed = {end.producer}
    layers = []
    for layer in reversed(model.layers):
        if layer.name in needed:
            layers.append(layer)
            needed.update(layer.inputs)
    if not layers:
        return model
    return replace(model, layers=owned(reversed(layers)), outputs=(end,))
