"""Places in a model at which several rules apply."""

from __future__ import annotations

from outvote.core.model import Layer, Ref
from outvote.mutate.subject import Subject


def activated(subject: Subject) -> list[Layer]:
    """The first call of every layer object that has an activation other than the linear one."""
    return [
        layer
        for layer in subject.model.layers
        if layer.shares is None and layer.config.get("activation") not in (None, "linear")
    ]


def foldable(subject: Subject) -> list[Ref]:
    """Tensors that a chain can lead to any shape: floats, and how many there are is known."""
    return [ref for ref in subject.float_tensors() if subject.spec(ref).size]
