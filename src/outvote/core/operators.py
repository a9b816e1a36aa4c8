"""What holds of layers that are plain operators: parts of `layers` in a dialect of such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outvote.core.model import Layer


def contains(layer: Layer, inner: Layer) -> bool:
    """None is part of another."""
    return False


def renamed(layer: Layer, name: str) -> Layer:
    """None keeps its own name elsewhere."""
    return replace(layer, name=name)


def stale(layer: Layer) -> Layer:
    """None holds what depends on shapes."""
    return layer


def makes_masks(layer: Layer) -> bool:
    """None gives masks that travel with tensors."""
    return False


def masked(layer: Layer, masks: Sequence[Any]) -> dict[str, Any]:
    """None is given any."""
    return {}
