"""Nodes that are activation functions: LEMON's AFRm and AFRp act on them."""

from __future__ import annotations

from dataclasses import replace

from outvote.core.model import Layer
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.dialects.onnx.nouns.node import opset_of
from outvote.mutate.subject import Subject

# Of one tensor, each without constants, all attributes with defaults.
ACTIVATIONS = (
    "Relu LeakyRelu Elu Selu Celu Gelu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Mish "
    "ThresholdedRelu Swish Softmax LogSoftmax Hardmax Exp Identity"
).split()
_NONE = ("Exp", "Identity")  # activations for whoever looks for one, but none that was meant so


def activations_of(subject: Subject) -> list[Layer]:
    """The nodes of a model that are activations."""
    return [
        layer
        for layer in subject.model.layers
        if layer.kind in ACTIVATIONS
        and layer.kind not in _NONE
        and subject.has_one_input(layer)
        and subject.keeps_shape(layer)
    ]


def others(subject: Subject, layer: Layer, tools: OnnxTools) -> list[Layer]:
    """Other activations that the node's set of operators has for its type."""
    dtype = subject.reads(layer)[0].dtype
    found = {kind: tools.operator(kind, opset_of(layer)) for kind in ACTIVATIONS}
    return [
        replace(layer, kind=kind, config={}, args=[layer.args[0]], weights=())
        for kind, operator in found.items()
        if kind != layer.kind and operator is not None and dtype in operator.inputs[0].types
    ]
