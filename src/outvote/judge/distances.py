"""How far apart two targets are on each input. One function per metric.

Every function returns one distance per instance. A distance that cannot be given (NaN on one
side) is NaN, and callers write `not d < threshold`, so that NaN never passes for agreement. What
is NaN, or the same infinity, on both sides agrees by every metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.core.truth import Truth
from outvote.judge.tolerance import LAYER_PLACES, NOTHING, base_tolerance


def class_score(labels: Array, output: Array, k: int) -> Array:
    """Score of the true class by its rank (CRADLE, equation 1); NaN where the output has NaN."""
    own = np.take_along_axis(output, labels[..., None].astype(np.int64), axis=-1)
    earlier = np.arange(output.shape[-1]) < labels[..., None]
    rank = 1 + np.sum((output > own) | ((output == own) & earlier), axis=-1)
    score = np.where(rank <= k, 2.0 ** (k - rank), 0.0)
    result: Array = np.where(np.isnan(output).any(axis=-1), np.nan, score)
    return result


def distance_class(labels: Array, a: Array, b: Array, k: int = 5) -> Array:
    """D_CLASS (CRADLE, equation 2): difference of the two scores, largest over positions."""
    difference = np.abs(class_score(labels, a, k) - class_score(labels, b, k))
    alike = (np.isnan(a) == np.isnan(b)).all(axis=-1)  # NaN in the same places, if anywhere
    agreed = np.where(np.isnan(difference) & alike, 0.0, difference)
    largest: Array = _per_instance(agreed).max(axis=1)
    return largest


def distance_mad(truth: Truth, a: Array, b: Array) -> Array:
    """D_MAD (CRADLE, equations 3 and 4) against the ground truth; 0/0 is 0."""
    same = _unordered(a, b)
    first, second = (_deviation(truth, output, same) for output in (a, b))
    total = first + second
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total == 0, 0.0, np.abs(first - second) / total)


def _unordered(a: Array, b: Array) -> Array:
    """Where both are NaN or the same infinity: no deviation of one from the other."""
    same: Array = (np.isnan(a) & np.isnan(b)) | (np.isinf(a) & (a == b))
    return same


def _deviation(truth: Truth, output: Array, same: Array) -> Array:
    """δ: the mean absolute difference from the truth; labels are one-hot without being written out.

    Elements on which both sides are without a number count as 0 on both.
    """
    if truth.labels is None:
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(np.asarray(output, np.float64) - np.asarray(truth.given))
        deviation: Array = _per_instance(np.where(same, 0.0, apart)).mean(axis=1)
        return deviation
    plain = np.where(same, 0, output)
    place = truth.labels[..., None].astype(np.int64)
    own = np.take_along_axis(plain, place, axis=-1).astype(np.float64)[..., 0]
    there = np.take_along_axis(same, place, axis=-1)[..., 0]
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.abs(plain).sum(axis=-1, dtype=np.float64)
        sums += np.where(there, 0.0, np.abs(own - 1.0) - np.abs(own))
    mean: Array = _per_instance(sums).mean(axis=1) / output.shape[-1]
    return mean


def distance_relative(a: Array, b: Array) -> Array:
    """Largest element-wise difference, relative to the largest element of the instance.

    Below 1e-30 nothing is relative: there processors may flush numbers to zero, each in its own
    way.
    """
    found = _difference(a, b)
    return np.zeros(_count(a)) if found is None else found.relative()


def looks(a: Array, b: Array, dtype: str) -> Array:
    """Two distances of each instance: `distance_relative`, and one relative to the element itself.

    The second look sees what a large neighbour hides from the first. No element counts as smaller
    than a few last places of the instance's largest: that is all that a sum leaves of terms that
    cancel.
    """
    found = _difference(a, b)
    if found is None:
        return np.zeros((2, _count(a)))
    return np.stack([found.relative(), found.by_element(base_tolerance(dtype, LAYER_PLACES))])


@dataclass(frozen=True)
class _Difference:
    """By instance: how far elements are apart, how large they are, and the largest finite one."""

    apart: Array
    sizes: Array
    scale: Array  # a column

    def relative(self) -> Array:
        largest = self.apart.max(axis=1, initial=0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.where(largest == 0, 0.0, largest / np.maximum(self.scale, NOTHING)[:, 0])

    def by_element(self, least: float) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            sizes = self.sizes + np.maximum(self.scale * least, NOTHING)
            found = np.where(self.apart == 0, 0.0, self.apart / sizes)
        largest: Array = found.max(axis=1, initial=0.0)
        return largest


def _difference(a: Array, b: Array) -> _Difference | None:
    """None where all elements are equal."""
    # Integers are equal or not as they are: float64 tells none apart above 2**53.
    same = _per_instance(np.asarray(a) == np.asarray(b))
    if same.all():
        return None
    x, y = _floats(a), _floats(b)
    with np.errstate(invalid="ignore", over="ignore"):
        same |= np.isnan(x) & np.isnan(y)
        apart = np.where(same, 0.0, np.abs(x - y))
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            apart = np.where(same, 0.0, np.maximum(apart, 1.0))
        sizes = np.maximum(np.abs(x), np.abs(y))
        scale = np.where(np.isfinite(sizes), sizes, 0.0).max(axis=1, initial=0.0, keepdims=True)
    return _Difference(apart, sizes, scale)


def _count(array: Array) -> int:
    return len(array) if array.ndim else 1


def _floats(values: Array) -> Array:
    return _per_instance(np.asarray(values, np.float64))


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
    """One row per instance; a tensor without axes is one instance."""
    # A size of -1 fails on no instances.
    return values.reshape(_count(values), math.prod(values.shape[1:]))


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
