"""Derivatives by central differences: a target computes the function in float64, beside a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import do
from outvote.core.arrays import Array
from outvote.core.exercises import Pull
from outvote.core.model import Layer
from outvote.core.train_protocol import Leaf, PulledBack
from outvote.judge.slopes import UNKNOWN, Slope, slope_of
from outvote.judge.tolerance import SLOPE_STEPS


@dataclass(frozen=True)
class Element:
    """One number of an input or a weight."""

    leaf: Leaf
    index: tuple[int, ...]


def slopes_at(
    bench: Bench, wide: Pull, elements: Sequence[Element], instrument: str
) -> list[Slope]:
    """How what a pull differentiates depends on single elements; `wide` is in float64."""
    base = _reply(bench, wide, instrument)
    if base is None:
        return [UNKNOWN] * len(elements)
    return [_slope(bench, wide, base, element, instrument) for element in elements]


def _slope(bench: Bench, pull: Pull, base: PulledBack, element: Element, instrument: str) -> Slope:
    value = float(_values(bench, pull, element.leaf)[element.index])
    scale = max(1.0, abs(value))
    steps = [scale * step for step in SLOPE_STEPS]
    changes: list[list[float]] = []
    for sign in (1.0, -1.0):
        replies = [
            _reply(bench, _moved(bench, pull, element, value + sign * step), instrument)
            for step in steps
        ]
        changes.append([np.nan if r is None else _change(pull, base, r) for r in replies])
    return slope_of(steps, changes[0], changes[1], _size(pull, base))


def _reply(bench: Bench, pull: Pull, instrument: str) -> PulledBack | None:
    found: PulledBack | None = do(bench, pull, [instrument], exact=True).replies.get(instrument)
    return found


def _change(pull: Pull, base: PulledBack, moved: PulledBack) -> float:
    """Of the number; the outputs are subtracted first, where it is a sum over them."""
    if pull.loss is not None or pull.penalty:
        return float(moved.value) - float(base.value)
    pairs = zip(pull.cotangents, moved.outputs.arrays, base.outputs.arrays, strict=False)
    with np.errstate(invalid="ignore", over="ignore"):
        return sum(float((c * _apart(a, b)).sum()) for c, a, b in pairs if c is not None)


def _apart(a: Array, b: Array) -> Array:
    """What is not moved has not changed, be it infinite."""
    return np.where(a == b, 0.0, a - b)


def _size(pull: Pull, base: PulledBack) -> float:
    if pull.loss is not None or pull.penalty:
        return abs(float(np.nan_to_num(base.value)))
    pairs = zip(pull.cotangents, base.outputs.arrays, strict=False)
    return sum(
        float(np.abs(np.nan_to_num(c * a)).max(initial=0.0)) for c, a in pairs if c is not None
    )


def _values(bench: Bench, pull: Pull, leaf: Leaf) -> Array:
    if not leaf.layer:
        return pull.inputs[leaf.place]
    weight = pull.model.layer(leaf.layer).weights[leaf.place]
    return np.asarray(bench.pool.blobs.get(weight.digest))


def _moved(bench: Bench, pull: Pull, element: Element, value: float) -> Pull:
    leaf = element.leaf
    array = np.array(_values(bench, pull, leaf))
    array[element.index] = value
    if not leaf.layer:
        inputs = list(pull.inputs)
        inputs[leaf.place] = array
        return replace(pull, inputs=tuple(inputs))
    digest = bench.pool.blobs.put(array)

    def changed(layer: Layer) -> Layer:
        if (layer.shares or layer.name) != leaf.layer:
            return layer
        weights = list(layer.weights)
        weights[leaf.place] = replace(weights[leaf.place], digest=digest)
        return replace(layer, weights=tuple(weights))

    layers = tuple(map(changed, pull.model.layers))
    return replace(pull, model=replace(pull.model, layers=layers))
