"""What the driver must know of a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from outvote.core.model import REF, Input, Layer, Model
from outvote.core.operators import contains as contains
from outvote.core.operators import makes_masks as makes_masks
from outvote.core.operators import masked as masked
from outvote.core.operators import renamed as renamed
from outvote.core.operators import stale as stale
from outvote.dialects.onnx.nouns.node import GRAPH, WEIGHT

_LOOKED_UP = {"Gather": 1, "GatherElements": 1, "GatherND": 1}  # which argument holds indices
_FEW = 2


def parameters(layer: Layer) -> dict[str, Any]:
    """Its attributes; sub-graphs and tensors among them are content, not parameters."""
    return {
        key: value
        for key, value in layer.config.items()
        if not (isinstance(value, Mapping) and (GRAPH in value or WEIGHT in value))
    }


def dtype(layer: Layer) -> str | None:
    """Nodes compute in the type of their tensors; none says so itself."""
    return None


def vocabulary(model: Model, item: Input) -> int:
    """How many ids an integer input may take: what the tables that it is looked up in hold."""
    sizes = []
    for layer in model.layers:
        place = _LOOKED_UP.get(layer.kind)
        if place is None or item.name not in layer.inputs or len(layer.args) <= place:
            continue
        table = layer.args[0]
        if isinstance(table, Mapping) and WEIGHT in table:
            axis = int(layer.config.get("axis", 0))
            sizes.append(layer.weights[table[WEIGHT]].shape[axis])
    return min(sizes, default=_FEW)


def words(model: Model, item: Input) -> list[str]:
    """Those that the nodes which read it know, and one that they do not."""
    reading = [layer for layer in model.layers if item.name in layer.inputs]
    known = [text for layer in reading for text in _texts([layer.config, layer.args])]
    return [*dict.fromkeys(known), "other"]


def _texts(structure: Any) -> Iterator[str]:
    """Every text in lists of texts and in constants; a text by itself is a word of the operator."""
    if isinstance(structure, Mapping):
        if REF in structure:  # the name of a tensor
            return
        for value in structure.values():
            yield from _texts(value)
    elif isinstance(structure, list | tuple):
        for value in structure:
            if isinstance(value, str):
                yield value
            else:
                yield from _texts(value)


def is_classifier(model: Model) -> bool:
    """Whether it ends in a sigmoid: one number that is a probability."""
    last = model.last_layer()
    return last is not None and last.kind == "Sigmoid"
