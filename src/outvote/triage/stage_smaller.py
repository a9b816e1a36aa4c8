"""Makes an exercise of training small: few instances, cotangents, weights and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.exercises import Exercise, Pull, Update
from outvote.core.instances import count_of, taken

Shows = Callable[[Exercise], bool]
_FEW = 4  # numbers of a weight that an optimiser is shown with


def smaller(exercise: Exercise, shows: Shows) -> Exercise:
    """The smallest that still shows it, of what is tried; each change is kept if it does."""
    again = True
    while again:
        again = False
        for candidate in _candidates(exercise):
            if shows(candidate):
                exercise, again = candidate, True
                break
    return exercise


def _candidates(exercise: Exercise) -> Iterator[Exercise]:
    if isinstance(exercise, Pull):
        yield from _fewer_instances(exercise)
        yield from _fewer_cotangents(exercise)
    elif isinstance(exercise, Update):
        yield from _fewer_weights(exercise)


def _fewer_instances(pull: Pull) -> Iterator[Pull]:
    """Halves of the batch, then each instance; not where inputs differ in what they batch."""
    axes = [item.batch for item in pull.model.inputs]
    count = count_of(pull.inputs, axes)
    batched = all(array.shape[:1] == (count,) for array in _beside(pull))
    if count < 2 or not batched or any(axis not in (0, None) for axis in axes):
        return
    half = count // 2
    for rows in (range(half), range(half, count)):
        yield replace(
            pull,
            inputs=tuple(taken(a, axis, rows) for a, axis in zip(pull.inputs, axes, strict=True)),
            cotangents=tuple(None if c is None else c[list(rows)] for c in pull.cotangents),
            truth=None if pull.truth is None else pull.truth[list(rows)],
            sample_weight=None if pull.sample_weight is None else pull.sample_weight[list(rows)],
        )


def _beside(pull: Pull) -> list[Array]:
    given = (*pull.cotangents, pull.truth, pull.sample_weight)
    return [array for array in given if array is not None]


def _fewer_cotangents(pull: Pull) -> Iterator[Pull]:
    """Half of the numbers that are not zero become zero."""
    for place, cotangent in enumerate(pull.cotangents):
        if cotangent is None:
            continue
        left = np.flatnonzero(cotangent)
        if len(left) < 2:
            continue
        for gone in (left[len(left) // 2 :], left[: len(left) // 2]):
            fewer = cotangent.copy()
            fewer.reshape(-1)[gone] = 0
            cotangents = list(pull.cotangents)
            cotangents[place] = fewer
            yield replace(pull, cotangents=tuple(cotangents))


def _fewer_weights(update: Update) -> Iterator[Update]:
    """One weight alone, without constraints on others, then the first few of its numbers."""
    if len(update.weights) > 1:
        for place in range(len(update.weights)):
            yield replace(
                update,
                weights=(update.weights[place],),
                gradients=tuple((row[place],) for row in update.gradients),
                rows=update.rows[place : place + 1],
                constraints=update.constraints[place : place + 1],
            )
        return
    if len(update.gradients) > 1:
        yield replace(update, gradients=update.gradients[:1])
        yield replace(update, gradients=update.gradients[:-1])
    (weight,) = update.weights
    if not any(rows is not None for rows in update.rows) and weight.size > _FEW:
        yield replace(
            update,
            weights=(weight.reshape(-1)[:_FEW],),
            gradients=tuple((row[0].reshape(-1)[:_FEW],) for row in update.gradients),
        )
