"""How far apart two targets are on each input. One function per metric.

Every function returns one distance per instance. A distance that cannot be given (NaN on one
side) is NaN, and callers write `not d < threshold`, so that NaN never passes for agreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from outvote.core.arrays import Array

_NOTHING = 1e-30


def class_score(labels: Array, output: Array, k: int) -> Array:
    """Score of the true class by its rank (CRADLE, equation 1); NaN where the output has NaN."""
    output = np.asarray(output, np.float64)
    own = np.take_along_axis(output, labels[..., None].astype(np.int64), axis=-1)
    earlier = np.arange(output.shape[-1]) < labels[..., None]
    rank = 1 + np.sum((output > own) | ((output == own) & earlier), axis=-1)
    score = np.where(rank <= k, 2.0 ** (k - rank), 0.0)
    result: Array = np.where(np.isnan(output).any(axis=-1), np.nan, score)
    return result


def distance_class(labels: Array, a: Array, b: Array, k: int = 5) -> Array:
    """D_CLASS (CRADLE, equation 2): difference of the two scores, largest over positions."""
    difference = np.abs(class_score(labels, a, k) - class_score(labels, b, k))
    largest: Array = _per_instance(difference).max(axis=1)
    return largest


def distance_mad(truth: Array, a: Array, b: Array) -> Array:
    """D_MAD (CRADLE, equations 3 and 4) against the ground truth; 0/0 is 0."""
    first, second = (
        _per_instance(np.abs(np.asarray(o, np.float64) - truth)).mean(axis=1) for o in (a, b)
    )
    total = first + second
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total == 0, 0.0, np.abs(first - second) / total)


def distance_relative(a: Array, b: Array) -> Array:
    """Largest element-wise difference, relative to the largest element of the instance.

    Elements that are NaN, or the same infinity, on both sides agree. Below 1e-30 nothing is
    relative: there processors may flush numbers to zero, each in its own way.
    """
    a, b = (_per_instance(np.asarray(o, np.float64)) for o in (a, b))
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(same, 0.0, np.abs(a - b)).max(axis=1, initial=0.0)
        sizes = np.maximum(np.abs(a), np.abs(b))
        scale = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=1, initial=0.0)
        return np.where(difference == 0, 0.0, difference / np.maximum(scale, _NOTHING))


def spread(output: Array) -> float:
    """How much an output depends on the input: largest distance of one instance to the next."""
    if len(output) < 2:
        return 0.0
    distances = distance_relative(output, np.roll(output, 1, axis=0))
    return float(np.nan_to_num(distances, nan=0.0).max())


def accuracy(labels: Array, output: Array, k: int) -> float:
    """Top-k accuracy, the metric that CRADLE compares with."""
    return float((class_score(labels, output, k) > 0).mean())


def _per_instance(values: Array) -> Array:
    return values.reshape(len(values), int(np.prod(values.shape[1:])))  # -1 fails on no instances


def noise_of(movements: Mapping[str, Sequence[Array | float]]) -> Array:
    """How far rounding moves a result, of how far each probe moved it on each target.

    The largest of a target's probes, and of the targets the lower median: how much a function
    amplifies is the same for all who compute it right. One who errs, or whose results vary by
    themselves, must not raise the noise that would excuse it. A result that jumps to infinity or
    NaN, or back, measures no rounding either: it would explain every difference away.
    """
    probed = (np.stack([np.asarray(m, np.float64) for m in found]) for found in movements.values())
    worst = [np.where(np.isfinite(moved), moved, 0.0).max(axis=0) for moved in probed]
    return np.asarray(np.sort(np.stack(worst), axis=0)[(len(worst) - 1) // 2])
