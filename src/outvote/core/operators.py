"""What holds of layers that are plain operators: parts of `layers` in a dialect of such."""

from __future__ import annotations

from dataclasses import replace

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
