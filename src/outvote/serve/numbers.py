"""What targets gave, side by side, and pictures of where they differ."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.findings.answers import KeptAnswers

_ROWS = 40  # of numbers, those that differ most first
_CELLS = 96  # of a heat map, in each direction
_COLD, _HOT = np.array([250, 236, 232]), np.array([150, 12, 10])
_SEEN = 1e-3  # of the largest difference: what is less has no colour
_ODD = (90, 40, 160)  # NaN or infinity on one side alone


@dataclass(frozen=True)
class Heat:
    """Where one target is away from the reference, and how far."""

    target: str
    largest: float
    picture: str  # a data address
    size: tuple[int, int]


@dataclass(frozen=True)
class SideBySide:
    """One output of all targets: its numbers where they differ most, and maps of the difference."""

    output: int
    shape: tuple[int, ...]
    names: list[str]  # of the columns
    reference: str
    rows: list[dict[str, Any]]
    more: int  # numbers that are not shown
    heats: list[Heat]
    others: list[str]  # targets whose output has another shape
    agree: bool  # on every number


def side_by_side(answers: KeptAnswers, accused: str | None) -> list[SideBySide]:
    """Every output that somebody has, those on which all agree last."""
    count = max((len(found) for found in answers.outputs.values()), default=0)
    made = [_output(place, answers, accused) for place in range(count)]
    return sorted((one for one in made if one is not None), key=lambda one: one.agree)


def _output(place: int, answers: KeptAnswers, accused: str | None) -> SideBySide | None:
    given = {n: found[place] for n, found in answers.outputs.items() if len(found) > place}
    if len(answers.expected) > place:
        given = {"expected": answers.expected[place], **given}
    given = {name: array for name, array in given.items() if array.dtype.kind in "fiub"}
    reference = next((n for n in given if n != accused), None)
    if reference is None:
        return None
    shape = given[reference].shape
    alike = {name: array for name, array in given.items() if array.shape == shape}
    others = [f"{n} {given[n].shape}" for n in given if n not in alike]
    if not given[reference].size:
        return SideBySide(place, shape, list(alike), reference, [], 0, [], others, not others)
    away = {
        name: _away(array, alike[reference]) for name, array in alike.items() if name != reference
    }
    scale = max((_largest(far) for far in away.values()), default=0.0)
    agree = not any(far.any() for far in away.values())
    drawn = away if given[reference].size > 1 and not agree else {}  # of one number there is no map
    return SideBySide(
        *(place, shape, list(alike), reference, _rows(alike, reference, away, scale)),
        max(0, given[reference].size - _ROWS),
        [_heat(name, far, scale) for name, far in drawn.items()],
        others,
        agree and not others,
    )


def _largest(far: Array) -> float:
    return float(far[np.isfinite(far)].max(initial=0.0))


def _away(array: Array, reference: Array) -> Array:
    """How far each number is away; infinite where only one side is a number.

    A wider reference is rounded first: that a type cannot hold more digits is no difference.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if array.dtype.kind == "f" and array.dtype.itemsize < reference.dtype.itemsize:
            reference = reference.astype(array.dtype)
        a, b = np.float64(array), np.float64(reference)
        far = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(far), np.inf, far))


def _rows(
    alike: Mapping[str, Array], reference: str, away: Mapping[str, Array], scale: float
) -> list[dict[str, Any]]:
    shape = alike[reference].shape
    worst = np.max([far.reshape(-1) for far in away.values()], axis=0) if away else None
    flat = np.arange(alike[reference].size) if worst is None else np.argsort(-worst, kind="stable")
    rows = []
    for place in flat[:_ROWS]:
        cells = [
            {
                "text": _text(array.reshape(-1)[place]),
                "heat": 0 if name == reference else _level(away[name].reshape(-1)[place], scale),
            }
            for name, array in alike.items()
        ]
        index = ", ".join(str(int(i)) for i in np.unravel_index(place, shape)) if shape else ""
        rows.append({"index": index, "cells": cells})
    return rows


def _level(far: float, scale: float) -> int:
    """0: equal, or next to nothing beside the farthest of all; 4: the farthest, or no number."""
    if not np.isfinite(far):
        return 4
    share = far / scale if scale else 0.0
    return 0 if share < _SEEN else 1 + int(3 * share)


def _text(value: Any) -> str:
    return f"{float(value):.7g}" if np.asarray(value).dtype.kind == "f" else str(value)


def _heat(target: str, far: Array, scale: float) -> Heat:
    from PIL import Image

    flat = far.reshape(-1, far.shape[-1]) if far.ndim > 1 else far.reshape(1, -1)
    cells = _pooled(flat)
    share = np.where(np.isfinite(cells), cells, 0.0) / (scale or 1.0)
    colours = (_COLD + (_HOT - _COLD) * share[..., None]).astype(np.uint8)
    colours[~np.isfinite(cells)] = _ODD
    buffer = io.BytesIO()
    Image.fromarray(colours).save(buffer, "PNG")
    data = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
    return Heat(target, _largest(far), data, (int(flat.shape[0]), int(flat.shape[1])))


def _pooled(array: Array) -> Array:
    """At most so many cells each way: of each block the largest number."""
    for axis in (0, 1):
        size = array.shape[axis]
        if size > _CELLS:
            starts = np.unique(np.linspace(0, size, _CELLS, endpoint=False).astype(int))
            array = np.maximum.reduceat(array, starts, axis=axis)
    return array
