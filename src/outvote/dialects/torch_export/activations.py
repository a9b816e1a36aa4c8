"""Calls that are activation functions: LEMON's AFRm and AFRp act on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outvote.core.model import Layer
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

_READ = "self"
_ALONG = {"dim": -1}
# Of one tensor each, which all of them call the same, and what else they must be given.
ACTIVATIONS: Mapping[str, Mapping[str, Any]] = {
    **{
        f"aten.{name}": {}
        for name in """relu relu6 leaky_relu elu selu celu gelu sigmoid log_sigmoid hardsigmoid
        hardswish hardtanh hardshrink softshrink tanh softplus mish silu""".split()
    },
    "aten.softmax.int": _ALONG,
    "aten.log_softmax.int": _ALONG,
}


def activations_of(subject: Subject) -> list[Layer]:
    """The calls of a program that are activations; those that write over what they read, too."""
    return [
        layer
        for layer in subject.model.layers
        if layer.kind.removesuffix("_") in ACTIVATIONS
        and subject.has_one_input(layer)
        and subject.keeps_shape(layer)
    ]


def others(subject: Subject, layer: Layer, tools: Tools) -> list[Layer]:
    """Other activations of the same tensor."""
    if not subject.reads(layer)[0].is_float:
        return []
    read = {_READ: layer.kwargs[_READ]}
    return [
        replace(layer, kind=kind, config=dict(more), kwargs=read)
        for kind, more in ACTIVATIONS.items()
        if kind != layer.kind.removesuffix("_")
    ]
