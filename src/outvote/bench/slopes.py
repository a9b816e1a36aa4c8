"""Derivatives by central differences: a target computes the function in float64, beside a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import do
from outvote.core.arrays import Array
from outvote.core.exercises import Pull
from outvote.core.train_protocol import Beside, Leaf, Move, PulledBack
from outvote.judge.slopes import UNKNOWN, Slope, is_coarse, slope_of
from outvote.judge.tolerance import PLACE, SLOPE_STEPS


@dataclass(frozen=True)
class Element:
    """One number of an input or a weight."""

    leaf: Leaf
    index: tuple[int, ...]


def slopes_at(
    bench: Bench, wide: Pull, elements: Sequence[Element], instrument: str
) -> list[Slope]:
    """How what a pull differentiates depends on single elements; `wide` is in float64."""
    moves = [move for element in elements for move in _moves(bench, wide, element)]
    asked = replace(wide, moves=tuple(moves))
    base = do(bench, asked, [instrument], exact=True).replies.get(instrument)
    if base is None:
        return [UNKNOWN] * len(elements)
    changes = (_change(wide, base, beside) for beside in base.beside)
    moved = [_moved(bench, wide, element, changes) for element in elements]
    place = PLACE["float32" if any(is_coarse(*sides) for sides in moved) else "float64"]
    return [slope_of(*sides, _size(wide, base) * place) for sides in moved]


def _moves(bench: Bench, pull: Pull, element: Element) -> list[Move]:
    """Every step up, then every step down."""
    leaf, value = element.leaf, _value(bench, pull, element)
    return [
        Move(leaf.layer, leaf.place, element.index, value + sign * step)
        for sign in (1.0, -1.0)
        for step in _steps(value)
    ]


def _steps(value: float) -> list[float]:
    scale = max(1.0, abs(value))
    return [scale * step for step in SLOPE_STEPS]


def _moved(
    bench: Bench, pull: Pull, element: Element, changes: Iterator[Array]
) -> tuple[list[float], Array, Array]:
    """The steps, and what changes above and below: a row for each step."""
    steps = _steps(_value(bench, pull, element))
    above, below = (np.stack(list(islice(changes, len(steps)))) for _ in ("up", "down"))
    moved = (above != 0).any(axis=0) | (below != 0).any(axis=0)  # what has not adds nothing
    return steps, above[:, moved], below[:, moved]


def _is_number(pull: Pull) -> bool:
    """Not a sum over outputs, whose changes are told one by one."""
    return pull.loss is not None or pull.penalty


def _change(pull: Pull, base: PulledBack, moved: Beside) -> Array:
    """Of the number, or of each output by its cotangent; the sum of these is the number then."""
    if _is_number(pull):
        return np.array([float(moved.value) - float(base.value)])
    pairs = zip(pull.cotangents, moved.outputs.arrays, base.outputs.arrays, strict=False)
    with np.errstate(invalid="ignore", over="ignore"):
        changes = [(c * _apart(a, b)).ravel() for c, a, b in pairs if c is not None]
    return np.concatenate([np.zeros(0), *changes])


def _apart(a: Array, b: Array) -> Array:
    """What is not moved has not changed, be it infinite."""
    return np.where(a == b, 0.0, a - b)


def _size(pull: Pull, base: PulledBack) -> float:
    if _is_number(pull):
        return abs(float(np.nan_to_num(base.value)))
    pairs = zip(pull.cotangents, base.outputs.arrays, strict=False)
    return sum(
        float(np.abs(np.nan_to_num(c * a)).max(initial=0.0)) for c, a in pairs if c is not None
    )


def _value(bench: Bench, pull: Pull, element: Element) -> float:
    leaf = element.leaf
    if not leaf.layer:
        return float(pull.inputs[leaf.place][element.index])
    weight = pull.model.layer(leaf.layer).weights[leaf.place]
    return float(np.asarray(bench.pool.blobs.get(weight.digest))[element.index])
