"""What the driver must know of a call of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from outvote.core.model import Input, Layer, Model
from outvote.dialects.torch_export.nouns.node import DTYPE, WEIGHT

_FEW = 2
_SIGMOID = "aten.sigmoid"


def parameters(layer: Layer) -> dict[str, Any]:
    return dict(layer.config)


def dtype(layer: Layer) -> str | None:
    """The type that a call asks for by name; others compute in that of their tensors."""
    told = layer.config.get("dtype")
    return str(told[DTYPE]) if isinstance(told, Mapping) and DTYPE in told else None


def contains(layer: Layer, inner: Layer) -> bool:
    """Calls are operators, and none is part of another."""
    return False


def renamed(layer: Layer, name: str) -> Layer:
    return replace(layer, name=name)


def stale(layer: Layer) -> Layer:
    """Calls hold nothing that depends on shapes."""
    return layer


def makes_masks(layer: Layer) -> bool:
    """Tensors of PyTorch carry no masks with them."""
    return False


def vocabulary(model: Model, item: Input) -> int:
    """How many ids an integer input may take: what the tables that it is looked up in hold."""
    sizes = []
    for layer in model.layers:
        table = layer.kwargs.get("weight")
        looked_up = layer.kind == "aten.embedding" and item.name in layer.inputs
        if looked_up and isinstance(table, Mapping) and WEIGHT in table:
            sizes.append(layer.weights[table[WEIGHT]].shape[0])
    return min(sizes, default=_FEW)


def words(model: Model, item: Input) -> tuple[str, ...]:
    """PyTorch has no tensors of texts."""
    return ()


def is_classifier(model: Model) -> bool:
    """Whether it ends in a sigmoid: one number that is a probability."""
    last = next((x for x in model.layers if x.name == model.outputs[0].producer), None)
    return last is not None and last.kind == _SIGMOID
