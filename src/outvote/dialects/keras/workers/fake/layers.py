"""The few kinds of layers that the fake target computes, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array

Compute = Callable[[Sequence[Array], Sequence[Array], Any], Array]


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


def _activated(x: Array, config: Mapping[str, Any]) -> Array:
    return ACTIVATIONS[config.get("activation") or "linear"](x)


def _dense(x: Array, weights: Sequence[Array], config: Mapping[str, Any]) -> Array:
    return _activated(x @ weights[0] + (weights[1] if len(weights) > 1 else 0), config)


def _conv(x: Array, weights: Sequence[Array], config: Mapping[str, Any]) -> Array:
    """One step after the other; what lies beyond the ends is zero, so that none is lost."""
    kernel, bias = weights
    before = (len(kernel) - 1) // 2
    padded = _padded(x, before, len(kernel) - 1 - before)
    steps = [padded[:, i : i + x.shape[1]] @ row for i, row in enumerate(kernel)]
    return _activated(np.sum(steps, axis=0, dtype=x.dtype) + bias, config)


def _normalised(x: Array, weights: Sequence[Array]) -> Array:
    gamma, beta, mean, variance = weights
    return np.asarray((x - mean) / np.sqrt(variance + np.float32(1e-3)) * gamma + beta)


def _padded(x: Array, before: int, after: int) -> Array:
    return np.pad(x, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])


def _rectified(x: Array) -> Array:
    return np.maximum(x, 0)


def _rescaled(x: Array, scale: Any) -> Array:
    return np.asarray(x * scale)


def _added(x: Array, y: Array) -> Array:
    return np.asarray(x + y)


KINDS: dict[str, Compute] = {
    "Dense": lambda x, w, c: _dense(x[0], w, c),
    "ReLU": lambda x, w, c: _rectified(x[0]),
    "Softmax": lambda x, w, c: _softmax(x[0]),
    "Flatten": lambda x, w, c: x[0].reshape(len(x[0]), -1),
    "Scale": lambda x, w, c: x[0] * c["by"],
    "Rescaling": lambda x, w, c: _rescaled(x[0], c["scale"]),
    "Reshape": lambda x, w, c: x[0].reshape(len(x[0]), *c["target_shape"]),
    "Cropping1D": lambda x, w, c: x[0][:, c["cropping"][0] : x[0].shape[1] - c["cropping"][1]],
    "ZeroPadding1D": lambda x, w, c: _padded(x[0], *c["padding"]),
    "Add": lambda x, w, c: _added(x[0], x[1]),
    "Activation": lambda x, w, c: _activated(x[0], c),
    "Conv1D": lambda x, w, c: _conv(x[0], w, c),
    "BatchNormalization": lambda x, w, c: _normalised(x[0], w),
    "GlobalAveragePooling1D": lambda x, w, c: x[0].mean(axis=1),
}
# Parameters of the kinds that may be drawn.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Dense": ("units",),
    "ReLU": (),
    "Softmax": (),
    "Rescaling": ("scale",),
    "Add": (),
}


def weights_of(
    kind: str, parameters: Mapping[str, Any], shape: Sequence[int]
) -> list[tuple[str, tuple[int, ...]]]:
    if kind != "Dense":
        return []
    units = int(parameters["units"])
    return [("kernel", (shape[-1], units)), ("bias", (units,))]
