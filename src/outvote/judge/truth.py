"""What `y` means for a model: class labels, values to hit, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.truth import Truth


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
