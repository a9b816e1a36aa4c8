"""What the driver must know of a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outvote.core.model import Input, Layer, Model


def parameters(layer: Layer) -> dict[str, Any]:
    return dict(layer.config)


def dtype(layer: Layer) -> str | None:
    return None


def contains(layer: Layer, inner: Layer) -> bool:
    return False


def renamed(layer: Layer, name: str) -> Layer:
    return replace(layer, name=name)


def stale(layer: Layer) -> Layer:
    return layer


def makes_masks(layer: Layer) -> bool:
    return False


def vocabulary(model: Model, item: Input) -> int:
    return 2


def words(model: Model, item: Input) -> tuple[str, ...]:
    return ()


def is_classifier(model: Model) -> bool:
    return False
