"""Activation functions, by the formulas of keras.activations, and the layers that apply them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Json
from outvote.dialects.keras.reference.call import Call, NotCovered, mask_of, tensor, wide

_erf = np.vectorize(math.erf, otypes=[np.float64])
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def sigmoid(x: Array) -> Array:
    # tanh never overflows, unlike exp.
    return 0.5 * (1 + np.tanh(0.5 * x))


def softplus(x: Array) -> Array:
    return np.logaddexp(x, 0.0)


def softmax(x: Array, axis: Any = -1) -> Array:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(powers / np.sum(powers, axis=axis, keepdims=True))


def log_softmax(x: Array, axis: int = -1) -> Array:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)))


def relu(
    x: Array, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Array:
    """max_value from there on, x from the threshold on, a line of that slope below it."""
    # Without a slope what is below is cut off: 0 * infinity would be NaN.
    below = negative_slope * (x - threshold) if negative_slope else np.where(np.isnan(x), x, 0.0)
    y = np.where(x >= threshold, x, below)
    return y if max_value is None else np.minimum(y, max_value)


def leaky_relu(x: Array, negative_slope: float = 0.2) -> Array:
    """A line of that slope below 0, of a slope of 0, too: what is below is no more cut off."""
    return np.where(x >= 0, x, negative_slope * x)


def elu(x: Array, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(x))


def celu(x: Array, alpha: float = 1.0) -> Array:
    return np.maximum(x, 0.0) + np.minimum(0.0, alpha * np.expm1(x / alpha))


def hard_sigmoid(x: Array) -> Array:
    """0 below -3, 1 above 3, x / 6 + 1 / 2 between."""
    return np.clip(x / 6 + 0.5, 0.0, 1.0)


def sparse_plus(x: Array) -> Array:
    """0 up to -1, x from 1 on, (x + 1)² / 4 between."""
    return np.where(x <= -1, 0.0, np.where(x >= 1, x, 0.25 * (x + 1) ** 2))


def sparsemax(x: Array, axis: int = -1) -> Array:
    """The projection on the simplex (Martins and Astudillo, 2016, Algorithm 1)."""
    z = np.moveaxis(x, axis, -1)
    ordered = -np.sort(-z, axis=-1)
    sums = np.cumsum(ordered, axis=-1)
    ranks = np.arange(1, z.shape[-1] + 1)
    support = np.sum(1 + ranks * ordered > sums, axis=-1, keepdims=True)
    tau = (np.take_along_axis(sums, support - 1, axis=-1) - 1) / support
    return np.moveaxis(np.maximum(z - tau, 0.0), -1, axis)


def glu(x: Array, axis: int = -1) -> Array:
    if x.shape[axis] % 2:
        raise NotCovered("glu of an odd number of channels")
    a, b = np.split(x, 2, axis=axis)
    return np.asarray(a * sigmoid(b))


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + _erf(x / math.sqrt(2))))


Function = Callable[[Array], Array]
FUNCTIONS: Mapping[str, Function] = {
    "celu": celu,
    "elu": elu,
    "exponential": np.exp,
    "gelu": gelu,
    "glu": glu,
    "hard_shrink": lambda x: np.where(np.abs(x) <= 0.5, 0.0, x),  # NaN is no number to set to 0
    "hard_sigmoid": hard_sigmoid,
    "hard_silu": lambda x: x * hard_sigmoid(x),
    "hard_swish": lambda x: x * hard_sigmoid(x),
    "hard_tanh": lambda x: np.clip(x, -1.0, 1.0),
    "leaky_relu": leaky_relu,
    "linear": lambda x: x,
    "log_sigmoid": lambda x: -softplus(-x),
    "log_softmax": log_softmax,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "relu": relu,
    "relu6": lambda x: relu(x, max_value=6.0),
    "selu": lambda x: _SELU_SCALE * elu(x, _SELU_ALPHA),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0.0),
    "softmax": softmax,
    "softplus": softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sparse_plus": sparse_plus,
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0.0, 1.0),
    "sparsemax": sparsemax,
    "squareplus": lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    "swish": lambda x: x * sigmoid(x),
    "tanh": np.tanh,
    "tanh_shrink": lambda x: x - np.tanh(x),
}


def activation(spec: Json) -> Function:
    """The function that a layer's `activation` names, in either form Keras writes."""
    if isinstance(spec, Mapping) and spec.get("class_name") == "function":
        spec = spec.get("config")
    if spec is None:
        return FUNCTIONS["linear"]
    if not isinstance(spec, str) or spec not in FUNCTIONS:
        raise NotCovered(f"activation {spec!r}")
    return FUNCTIONS[spec]


def _activation(call: Call) -> list[Array]:
    return [activation(call.get("activation"))(call.floats())]


def _relu(call: Call) -> list[Array]:
    slope, threshold = call.get("negative_slope", 0.0) or 0.0, call.get("threshold", 0.0) or 0.0
    return [relu(call.floats(), slope, call.get("max_value"), threshold)]


def _softmax(call: Call) -> list[Array]:
    """Masked positions get nothing; a row that is masked as a whole is zero."""
    inputs, given = call.arguments("inputs", "mask")
    mask = mask_of(inputs) if given is None else tensor(given).astype(bool)
    x, axis = wide(tensor(inputs)), call.get("axis", -1)
    axis = tuple(axis) if isinstance(axis, list | tuple) else axis
    if mask is None:
        return [softmax(x, axis)]
    if mask.ndim != x.ndim:
        raise NotCovered("Softmax with a mask of another rank")
    kept = np.broadcast_to(mask, x.shape)
    shares = softmax(np.where(kept, x, -np.inf), axis)
    return [np.where(kept, shares, 0.0)]


def _prelu(call: Call) -> list[Array]:
    (alpha,) = call.unpack(True)
    call.irrelevant("shared_axes")  # the shape of alpha says it
    x = call.floats()
    return [np.where(x > 0, x, alpha * x)]


KINDS = {
    "Activation": _activation,
    "ELU": lambda call: [elu(call.floats(), call.get("alpha", 1.0))],
    "LeakyReLU": lambda call: [leaky_relu(call.floats(), call.get("negative_slope", 0.3))],
    "PReLU": _prelu,
    "ReLU": _relu,
    "Softmax": _softmax,
}
EXACT: frozenset[str] = frozenset({"ReLU"})
