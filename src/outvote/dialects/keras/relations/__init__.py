"""Other ways to the same result that Keras' layers have; those that any layer has are neutral."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outvote.bench.relation import Relation
from outvote.core.model import Layer
from outvote.relations import relations_in

_AXES = ("axis", "axes")


def own_relations() -> Mapping[str, Relation]:
    return relations_in(__name__)


def couples_instances(layer: Layer) -> bool:
    """Layers that keep states from batch to batch, work along the batch itself, or learn of it."""
    told = [layer.config.get(name) for name in _AXES] + [layer.kwargs.get(name) for name in _AXES]
    learns = layer.config.get("stateful") or layer.kwargs.get("training")
    return bool(learns) or any(map(_is_first, told))


def _is_first(axis: Any) -> bool:
    if isinstance(axis, list | tuple):
        return any(map(_is_first, axis))
    return axis == 0 and not isinstance(axis, bool)
