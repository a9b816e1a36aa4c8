"""Whether steps of training part for no other reason than that gradients do.

A gradient that is nothing but rounding, such as that of a bias before a BatchNormalization, becomes
a whole step in an optimiser like Adam. So the first step of each target is held against what
updates make of gradients that rounding moves. What part in it so, no later step can be held to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do, moved_by
from outvote.core.arrays import Array
from outvote.core.exercises import Update
from outvote.core.train_protocol import Leaf
from outvote.judge.tolerance import PROBES, model_tolerance

Place = tuple[str, int]  # of a leaf: its layer, and its place there
UpdateOf = Callable[[Sequence[Leaf]], tuple[list[Leaf], Update] | None]
"""The update of the weights by their gradients, and which of these it takes."""


@dataclass
class _Led:
    """Where gradients lead to, on every target and however rounding moves them."""

    losses: list[Array] = field(default_factory=list)
    learned: list[Mapping[Place, Array]] = field(default_factory=list)
    gradients: list[Mapping[Place, Array]] = field(default_factory=list)
    statistics: list[Mapping[Place, Array]] = field(default_factory=list)


def parts_with_gradients(
    bench: Bench, steps: Exercised, pulled: Exercised, update_of: UpdateOf
) -> bool:
    """Whether targets part in the first step, and nobody goes where no gradients lead.

    `pulled`: the gradients of the whole model, which are a stage of their own.
    """
    names = list(steps.replies)
    led = _led(bench, names, pulled, update_of)
    if led is None:
        return False
    after = [_by_place(steps.replies[name].weights[0]) for name in names]
    shapes = [{place: array.shape for place, array in found.items()} for found in after]
    if any(shape != shapes[0] for shape in shapes):
        return False
    parted = [p for p in after[0] if not _alike([found[p] for found in after])]
    losses = [np.array(steps.replies[name].losses[0]) for name in names]
    near = _are_near(losses, led.losses, None)
    return near and bool(parted) and all(_leads(place, after, led) for place in parted)


def _led(bench: Bench, names: Sequence[str], pulled: Exercised, update_of: UpdateOf) -> _Led | None:
    """None where the gradients of one lead nowhere, or to other weights."""
    moves = [moved_by(bench, pulled.exercise, names, seed) for seed in PROBES]
    found = _Led()
    for pull in (pulled, *(do(bench, move, names) for move in moves)):
        for name in names:
            asked = update_of(pull.replies[name].gradients) if name in pull.replies else None
            if asked is None:
                return None
            leaves, update = asked
            once = replace(update, gradients=update.gradients[:1])
            reply = do(bench, once, [name]).replies.get(name)
            if reply is None:
                return None
            pairs = zip(leaves, reply.weights[0], strict=True)
            found.learned.append({(leaf.layer, leaf.place): array for leaf, array in pairs})
            found.gradients.append(_by_place(leaves))
            found.statistics.append(_by_place(pull.replies[name].statistics))
            found.losses.append(pull.replies[name].value)
    same = all(row.keys() == found.learned[0].keys() for row in found.learned)
    return found if same else None


def _by_place(leaves: Sequence[Leaf]) -> dict[Place, Array]:
    return {(leaf.layer, leaf.place): leaf.array for leaf in leaves if leaf.array is not None}


def _leads(place: Place, after: Sequence[Mapping[Place, Array]], led: _Led) -> bool:
    """Whether a weight is where updates lead to, or a statistic what calls leave behind."""
    given = [found[place] for found in after]
    if place in led.learned[0]:
        unsure = _unsure([found[place] for found in led.gradients])
        return _are_near(given, [found[place] for found in led.learned], unsure)
    if all(place in found for found in led.statistics):
        return _are_near(given, [found[place] for found in led.statistics], None)
    return False


def _unsure(gradients: Sequence[Array]) -> Array:
    """Elements that rounding moves by more than they are: of these even the sign may be another."""
    stacked = np.stack(gradients).astype(np.float64)
    moved = np.ptp(stacked, axis=0)
    unsure: Array = (moved > 0) & (moved >= np.abs(stacked).min(axis=0))
    return unsure


def _are_near(given: Sequence[Array], ends: Sequence[Array], unsure: Array | None) -> bool:
    """Whether each is between the ends, or no farther beside than they are apart.

    Of what is unsure, the ends of the whole array tell how far a step is.
    """
    stacked = np.stack(ends).astype(np.float64)
    low, high = stacked.min(axis=0), stacked.max(axis=0)
    allowed = high - low
    if unsure is not None:
        allowed = np.where(unsure, allowed.max(initial=0.0), allowed)
    allowed = np.maximum(allowed, _rounding(np.stack(ends)))
    return all(bool((np.maximum(low - a, a - high) <= allowed).all()) for a in given)


def _alike(arrays: Sequence[Array]) -> bool:
    stacked = np.stack(arrays)
    return float(np.ptp(stacked, axis=0).max(initial=0.0)) <= _rounding(stacked)


def _rounding(arrays: Array) -> float:
    """What numbers may differ by without being asked why."""
    return model_tolerance(arrays.dtype.name) * float(np.abs(arrays).max(initial=0.0))
