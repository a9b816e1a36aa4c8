"""Whether steps of training part for no other reason than that gradients do.

A gradient that is nothing but rounding, such as that of a bias before a BatchNormalization, becomes
a whole step in an optimiser like Adam. So each target's first step is held against what its own
update makes of its own gradients, as rounding moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

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


def parts_with_gradients(
    bench: Bench, steps: Exercised, pulled: Exercised, update_of: UpdateOf
) -> bool:
    """Whether targets part in the first step, and each goes where its own gradients lead.

    `pulled`: the gradients of the whole model, which are a stage of their own.
    """
    names = [name for name in steps.replies if name in pulled.replies]
    after = {name: _by_place(steps.replies[name].weights[0]) for name in names}
    moves = [moved_by(bench, pulled.exercise, names, seed) for seed in PROBES]
    pulls = [pulled, *(do(bench, move, names) for move in moves)]
    led: dict[str, list[Mapping[Place, Array]]] = {name: [] for name in names}
    for pull in pulls:
        for name in names:
            found = _led_to(bench, pull, name, update_of)
            if found is None or found.keys() - after[name].keys():
                return False
            led[name].append(found)
    places = list(led[names[0]][0]) if len(names) > 1 else []
    parted = [place for place in places if not _alike([after[n][place] for n in names])]
    return bool(parted) and all(_leads(after, led, place) for place in places)


def _led_to(
    bench: Bench, pull: Exercised, name: str, update_of: UpdateOf
) -> Mapping[Place, Array] | None:
    """The weights after one update; None where there is none."""
    asked = update_of(pull.replies[name].gradients) if name in pull.replies else None
    if asked is None:
        return None
    leaves, update = asked
    once = replace(update, gradients=update.gradients[:1])
    reply = do(bench, once, [name]).replies.get(name)
    if reply is None:
        return None
    pairs = zip(leaves, reply.weights[0], strict=True)
    return {(leaf.layer, leaf.place): array for leaf, array in pairs}


def _by_place(leaves: Sequence[Leaf]) -> dict[Place, Array]:
    return {(leaf.layer, leaf.place): leaf.array for leaf in leaves if leaf.array is not None}


def _leads(
    after: Mapping[str, Mapping[Place, Array]],
    led: Mapping[str, Sequence[Mapping[Place, Array]]],
    place: Place,
) -> bool:
    """Whether a weight is where updates lead to, or no farther beside than they are apart."""
    ends = np.stack([found[place] for of_target in led.values() for found in of_target])
    low, high = ends.min(axis=0).astype(np.float64), ends.max(axis=0).astype(np.float64)
    spread = float((high - low).max(initial=0.0))
    for found in after.values():
        beside = np.maximum(low - found[place], found[place] - high)
        if not float(beside.max(initial=0.0)) <= max(spread, _rounding(ends)):
            return False
    return True


def _alike(arrays: Sequence[Array]) -> bool:
    stacked = np.stack(arrays)
    return float(np.ptp(stacked, axis=0).max(initial=0.0)) <= _rounding(stacked)


def _rounding(arrays: Array) -> float:
    """What weights may differ by without being asked why."""
    return model_tolerance(arrays.dtype.name) * float(np.abs(arrays).max(initial=0.0))
