"""The logits layer of a model, which AUDEE's fitness functions read (section 2.4.3)."""

from __future__ import annotations

from dataclasses import replace

from outvote.core.model import REF, Layer, Model, Ref

_SQUASHING = ("softmax", "sigmoid", "log_softmax", "hard_sigmoid")


def logits_apart(model: Model) -> tuple[Model, Ref]:
    """The same computation with the logits as a tensor of the graph, and which one it is.

    An output layer with a softmax (or the like) as its activation becomes two layers.
    """
    ref = model.outputs[0]
    layer = next((item for item in model.layers if item.name == ref.producer), None)
    if layer is None:
        return model, ref
    activation = layer.config.get("activation")
    if layer.kind == "Softmax" or (layer.kind == "Activation" and activation in _SQUASHING):
        return model, next(iter(layer.refs()))
    alone = layer.shares is None and not any(x.shares == layer.name for x in model.layers)
    if activation not in _SQUASHING or not alone:
        return model, ref
    linear = replace(layer, config={**layer.config, "activation": "linear"})
    end = _activation(layer, str(activation), {layer.name, *(x.name for x in model.layers)})
    layers = [linear if item.name == layer.name else item for item in model.layers]
    outputs = tuple(Ref(end.name) if out == ref else out for out in model.outputs)
    return replace(model, layers=(*layers, end), outputs=outputs), ref


def _activation(layer: Layer, activation: str, taken: set[str]) -> Layer:
    name = f"{layer.name}_activation"
    while name in taken:
        name += "_"
    config = {key: layer.config[key] for key in ("trainable", "dtype") if key in layer.config}
    return Layer(
        name,
        "Activation",
        {**config, "name": name, "activation": activation},
        args=[{REF: [layer.name, 0]}],
        origin={key: value for key, value in layer.origin.items() if key == "module"},
    )
