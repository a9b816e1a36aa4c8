"""What `y` means for a model: class labels, values to hit, or nothing; and what stands for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.truth import Truth
from outvote.judge.tolerance import BEYOND_CERTAIN, BEYOND_VALUE, HARDLY, SUM_OF_ALL


def interpret(truth: Array | None, shape: Sequence[int | None]) -> Truth:
    """Read `y` against the shape of the model's first output (None: any size)."""
    if truth is None:
        return Truth()
    classes = shape[-1] if len(shape) > 1 else None
    if classes is not None and classes > 1 and truth.dtype.kind in "iub":
        if truth.ndim == len(shape) and truth.shape[-1] == 1:
            truth = truth[..., 0]
        if truth.ndim == len(shape) - 1:
            _check_labels(truth, classes)
            return Truth(labels=truth.astype(np.int64), classes=classes)
    if classes is not None and classes > 1 and _is_one_hot(truth, shape):
        return Truth(labels=truth.argmax(axis=-1), classes=classes)
    if truth.ndim == len(shape) - 1 and shape[-1] == 1:
        truth = truth[..., None]
    if truth.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape[1:], truth.shape[1:], strict=True)
    ):
        sizes = ", ".join("any" if n is None else str(n) for n in shape)
        raise UsageError(
            f"y has shape {truth.shape} and dtype {truth.dtype}, which does not fit the model's "
            f"output ({sizes}); give class labels as integers, or values of the output's shape"
        )
    return Truth(given=truth.astype(np.float64))


def _check_labels(labels: Array, classes: int) -> None:
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        where = int(np.argmax(wrong.reshape(len(labels), -1).any(axis=1)))
        value = labels[wrong].reshape(-1)[0]
        raise UsageError(
            f"y holds the label {value} (instance {where}), but the model has {classes} classes, "
            f"0 to {classes - 1}"
        )


def _is_one_hot(truth: Array, shape: Sequence[int | None]) -> bool:
    return (
        truth.ndim == len(shape)
        and truth.shape[-1] == shape[-1]
        and bool(((truth == 0) | (truth == 1)).all())
        and bool((truth.sum(axis=-1) == 1).all())
    )


def presumed(answers: Sequence[Array]) -> Truth:
    """What stands for the truth where none is known: the targets' common answer, overdone.

    D_MAD compares distances to the truth by their ratio. A truth as near to the outputs as these
    are to each other (one target's own output, or the mean of all) turns the last bit of rounding
    into a distance of one. So the answer is made certain, as a label is, and the truth lies a
    little beyond what any target can give; values, which have no such end, are led on a little in
    the direction in which they leave the mean answer. No target's output is preferred.
    """
    found = np.stack([np.asarray(answer, np.float64) for answer in answers])
    middle = np.median(np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0), axis=0)
    if not middle.size:
        return Truth(given=middle)
    if _are_probabilities(middle):
        return Truth(given=_certain(middle) * (1 + 2 * BEYOND_CERTAIN) - BEYOND_CERTAIN)
    return Truth(given=middle + BEYOND_VALUE * _onward(middle))


def _are_probabilities(answer: Array) -> bool:
    return bool((answer >= 0).all() and (answer <= 1 + SUM_OF_ALL).all())


def _certain(answer: Array) -> Array:
    """The answer of a model that has no doubt: one class of all, or yes or no to each."""
    classes = answer.shape[-1] if answer.ndim > 1 else 1
    of_all = classes > 1 and bool((np.abs(answer.sum(axis=-1) - 1) < SUM_OF_ALL).all())
    return np.eye(classes)[answer.argmax(axis=-1)] if of_all else np.rint(answer)


def _onward(answer: Array) -> Array:
    """The mean distance to the mean answer, in the direction in which each number leaves it.

    Where all instances are answered alike it is the size of the answer, or one.
    """
    leaves = answer - answer.mean(axis=0)
    size = np.abs(answer).max()
    spread = np.abs(leaves).mean()
    return np.where(leaves < 0, -1.0, 1.0) * (spread if spread > HARDLY * size else size or 1.0)
