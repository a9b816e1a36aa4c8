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


def _dense(x: Array, weights: Sequence[Array], config: Mapping[str, Any]) -> Array:
    result: Array = x @ weights[0] + (weights[1] if len(weights) > 1 else 0)
    return np.maximum(result, 0) if config.get("activation") == "relu" else result


def _padded(x: Array, before: int, after: int) -> Array:
    return np.pad(x, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])


KINDS: dict[str, Compute] = {
    "Dense": lambda x, w, c: _dense(x[0], w, c),
    "ReLU": lambda x, w, c: np.maximum(x[0], 0),
    "Softmax": lambda x, w, c: _softmax(x[0]),
    "Flatten": lambda x, w, c: x[0].reshape(len(x[0]), -1),
    "Scale": lambda x, w, c: x[0] * c["by"],
    "Rescaling": lambda x, w, c: x[0] * c["scale"],
    "Reshape": lambda x, w, c: x[0].reshape(len(x[0]), *c["target_shape"]),
    "Cropping1D": lambda x, w, c: x[0][:, c["cropping"][0] : x[0].shape[1] - c["cropping"][1]],
    "ZeroPadding1D": lambda x, w, c: _padded(x[0], *c["padding"]),
    "Add": lambda x, w, c: x[0] + x[1],
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
