"""What the driver must know of a call of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outvote.core.model import Input, Layer, Model
from outvote.core.operators import contains as contains
from outvote.core.operators import makes_masks as makes_masks
from outvote.core.operators import masked as masked
from outvote.core.operators import renamed as renamed
from outvote.core.operators import stale as stale
from outvote.dialects.torch_export.nouns.node import DTYPE, WEIGHT

_FEW = 2
_SIGMOID = "aten.sigmoid"


def parameters(layer: Layer) -> dict[str, Any]:
    return dict(layer.config)


def dtype(layer: Layer) -> str | None:
    """The type that a call asks for by name; others compute in that of their tensors."""
    told = layer.config.get("dtype")
    return str(told[DTYPE]) if isinstance(told, Mapping) and DTYPE in told else None


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
    last = model.last_layer()
    return last is not None and last.kind == _SIGMOID
