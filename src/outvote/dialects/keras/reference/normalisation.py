"""Layers that bring numbers to a common mean, variance or length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.call import Call, NotCovered, mask_of, tensor, wide

_EPSILON = 1e-7  # keras.config.epsilon()


def _batch(call: Call) -> list[Array]:
    """By the moving mean and variance, in training the batch's (Ioffe and Szegedy, 2015)."""
    call.irrelevant("momentum synchronized renorm_clipping renorm_momentum")
    call.only("renorm", False)
    inputs, given, learns = call.arguments("inputs", "mask", "training")
    x = wide(tensor(inputs))
    scale, center = call.get("scale", True), call.get("center", True)
    gamma, beta, mean, variance = call.unpack(scale, center, True, True)
    axis = call.get("axis", -1)
    axes = axis if isinstance(axis, list | tuple) else [axis]
    if len(axes) != 1:
        raise NotCovered("BatchNormalization over several axes")
    if learns:
        mask = mask_of(inputs) if given is None else tensor(given).astype(bool)
        mean, variance = _moments(x, mask, axes[0])
    gamma, beta, mean, variance = (_along(w, x, axes) for w in (gamma, beta, mean, variance))
    assert variance is not None
    return [_scaled((x - mean) / np.sqrt(variance + call.get("epsilon", 1e-3)), gamma, beta)]


def _moments(x: Array, mask: Array | None, axis: int) -> tuple[Array, Array]:
    """Of every channel, over all places that are not masked."""
    kept = np.ones(x.shape[:1], bool) if mask is None else mask
    if kept.ndim >= x.ndim or kept.shape != x.shape[: kept.ndim] or 0 <= axis < kept.ndim:
        raise NotCovered("a mask that is not one truth value per place")
    seen = np.moveaxis(x, axis, -1)[kept].reshape(-1, x.shape[axis])
    if not len(seen):
        raise NotCovered("the mean of nothing")
    return seen.mean(axis=0), seen.var(axis=0)


def _layer(call: Call) -> list[Array]:
    """(x - mean) / sqrt(variance + ε) over the axes (Ba et al., 2016).

    `rms_scaling`, which is deprecated, divides x itself by that root, and has no beta.
    """
    rms = call.get("rms_scaling", False)
    scale, center = call.get("scale", True) or rms, call.get("center", True) and not rms
    gamma, beta = call.unpack(scale, center)
    x = call.floats()
    axes = _sorted_axes(call.get("axis", -1), x)
    mean = 0.0 if rms else x.mean(axis=axes, keepdims=True)
    y = (x - mean) / np.sqrt(x.var(axis=axes, keepdims=True) + call.get("epsilon", 1e-3))
    return [_scaled(y, _along(gamma, x, axes), _along(beta, x, axes))]


def _group(call: Call) -> list[Array]:
    """Each group of channels has its own mean and variance, over all places (Wu and He, 2018)."""
    gamma, beta = call.unpack(call.get("scale", True), call.get("center", True))
    x = call.floats()
    axis = call.get("axis", -1)
    if not isinstance(axis, int):
        raise NotCovered("GroupNormalization over several axes")
    channels = x.shape[axis]
    groups = channels if call.get("groups", 32) == -1 else call.get("groups", 32)
    last = np.moveaxis(x, axis, -1)
    grouped = last.reshape(*last.shape[:-1], groups, channels // groups)
    axes = (*range(1, last.ndim - 1), last.ndim)
    y = grouped - grouped.mean(axis=axes, keepdims=True)
    y = y / np.sqrt(grouped.var(axis=axes, keepdims=True) + call.get("epsilon", 1e-3))
    y = np.moveaxis(y.reshape(last.shape), -1, axis)
    return [_scaled(y, _along(gamma, x, [axis]), _along(beta, x, [axis]))]


def _rms(call: Call) -> list[Array]:
    """x / sqrt(mean(x²) + ε) · scale (Zhang and Sennrich, 2019)."""
    (scale,) = call.unpack(True)
    x = call.floats()
    axes = _sorted_axes(call.get("axis", -1), x)
    size = np.sqrt((x * x).mean(axis=axes, keepdims=True) + call.get("epsilon", 1e-6))
    return [_scaled(x / size, _along(scale, x, axes), None)]


def _unit(call: Call) -> list[Array]:
    """Each vector divided by its length; a vector of zeros stays one."""
    x = call.floats()
    axes = _sorted_axes(call.get("axis", -1), x)
    length = np.sqrt((x * x).sum(axis=axes, keepdims=True))
    if ((length > 0) & (length < 1e-5)).any():
        raise NotCovered("a vector too short to have a direction")
    return [np.where(length == 0, 0.0, x / np.where(length == 0, 1.0, length))]


def _to_standard(call: Call) -> list[Array]:
    """(x - mean) / sqrt(variance), or back, by numbers that were given or learned."""
    x = call.floats()
    mean, variance = call.get("mean"), call.get("variance")
    axis = call.get("axis", -1)
    if mean is None:
        mean, variance, _ = call.unpack(True, True, True)  # the third counts what was seen
    elif call.weights:
        raise NotCovered("Normalization that was given its mean and has learned one")
    axes = () if axis is None else _sorted_axes(axis, x)
    middle, spread = (_spanning(value, x, axes) for value in (mean, variance))
    deviation = np.maximum(np.sqrt(spread), _EPSILON)
    return [x * deviation + middle if call.get("invert", False) else (x - middle) / deviation]


def _spanning(value: Any, x: Array, axes: Sequence[int]) -> Array:
    """A number for all, or one for each place along the axes."""
    numbers = np.asarray(value, np.float64)
    shape = [n if a in axes else 1 for a, n in enumerate(x.shape)]
    return numbers if numbers.ndim == 0 else numbers.reshape(shape)


def _along(weight: Array | None, x: Array, axes: Sequence[int]) -> Array | None:
    """A weight laid along the axes it belongs to."""
    if weight is None:
        return None
    kept = {axis % x.ndim for axis in axes}
    shape = [n if a in kept else 1 for a, n in enumerate(x.shape)]
    if math.prod(shape) != weight.size:
        raise NotCovered("a weight that does not span its axes")
    return weight.reshape(shape)


def _sorted_axes(axis: int | Sequence[int], x: Array) -> tuple[int, ...]:
    """Axes counted from the front; Keras documents no meaning of another order."""
    axes = [a % x.ndim for a in ([axis] if isinstance(axis, int) else axis)]
    if axes != sorted(set(axes)):
        raise NotCovered(f"axes {axis!r}")
    return tuple(axes)


def _scaled(y: Array, gamma: Array | None, beta: Array | None) -> Array:
    y = y if gamma is None else y * gamma
    return np.asarray(y if beta is None else y + beta)


KINDS = {
    "BatchNormalization": _batch,
    "GroupNormalization": _group,
    "LayerNormalization": _layer,
    "Normalization": _to_standard,
    "RMSNormalization": _rms,
    "UnitNormalization": _unit,
}
EXACT: frozenset[str] = frozenset()
