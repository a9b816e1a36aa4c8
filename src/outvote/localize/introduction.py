"""CRADLE's localisation: how much deviation each layer introduces (section III-C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.model import Model
from outvote.core.outputs import Outputs
from outvote.judge.compare import mismatch_of

EPSILON = 1e-7


@dataclass(frozen=True)
class Introduction:
    """δ and R of every layer, the third quartile of R, and the layers above it."""

    delta: Mapping[str, float]
    rate: Mapping[str, float]
    threshold: float
    red: tuple[str, ...]  # in topological order

    @property
    def first(self) -> str | None:
        return self.red[0] if self.red else None


def deviation(a: Outputs, b: Outputs) -> float:
    """δ: mean absolute difference of a layer's outputs (equation 3); infinite if not comparable."""
    if mismatch_of(a, b) is not None:
        return float("inf")
    total, count = 0.0, 0
    for x, y in zip(a.arrays, b.arrays, strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
            same = (wide_x == wide_y) | (np.isnan(wide_x) & np.isnan(wide_y))
            difference = np.where(same, 0.0, np.abs(wide_x - wide_y))
        total += float(difference.sum())
        count += difference.size
    result = total / count if count else 0.0
    return result if np.isfinite(result) else float("inf")


def introduction(model: Model, delta: Mapping[str, float], back: bool = False) -> Introduction:
    """R of every layer from the deviations (equations 5 and 6).

    `back`: deviations of gradients, which come to a layer from those that read it.
    """
    rate: dict[str, float] = {}
    for name, sources in _walk(model, back):
        if name not in delta:
            continue
        before = max((delta.get(source, 0.0) for source in sources), default=0.0)
        rate[name] = 0.0 if np.isinf(before) else (delta[name] - before) / (before + EPSILON)
    values = [value for value in rate.values() if np.isfinite(value)]
    threshold = float(np.quantile(values, 0.75)) if values else 0.0
    red = tuple(name for name, value in rate.items() if value > threshold)
    return Introduction(dict(delta), rate, threshold, red)


def _walk(model: Model, back: bool) -> list[tuple[str, Sequence[str]]]:
    """Layers in the order of the computation, each with those that it gets something from."""
    if not back:
        return [(layer.name, layer.inputs) for layer in model.layers]
    readers: dict[str, list[str]] = {layer.name: [] for layer in model.layers}
    for layer in model.layers:
        for source in layer.inputs:
            readers.setdefault(source, []).append(layer.name)
    return [(layer.name, readers[layer.name]) for layer in reversed(model.layers)]
