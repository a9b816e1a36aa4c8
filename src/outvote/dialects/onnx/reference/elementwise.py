"""Operators that work on each element, or on pairs of elements that are broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered

Formula = Callable[[NodeCall], list[Array]]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def _of_floats(formula: Callable[[Array], Array]) -> Formula:
    return lambda call: [formula(call.floats())]


def _of_numbers(formula: Callable[[Array], Array]) -> Formula:
    return lambda call: [formula(call.need(0))]


def _paired(formula: Callable[[Array, Array], Array]) -> Formula:
    def compute(call: NodeCall) -> list[Array]:
        if call.opset < 7:
            raise Uncovered(f"{call.kind} before opset 7 broadcasts in another way")
        return [np.asarray(formula(call.need(0), call.need(1)))]

    return compute


def _folded(formula: Callable[[Array, Array], Array]) -> Formula:
    def compute(call: NodeCall) -> list[Array]:
        first, *others = call.every()
        for other in others:
            first = formula(first, other)
        return [first]

    return compute


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -x))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


def _relu(call: NodeCall) -> list[Array]:
    x = call.need(0)
    return [np.where(np.isnan(x), x, np.maximum(x, 0)) if x.dtype.kind == "f" else np.maximum(x, 0)]


def _leaky_relu(call: NodeCall) -> list[Array]:
    x, alpha = call.floats(), call.get("alpha", 0.01)
    return [np.where(x < 0, alpha * x, x)]


def _elu(call: NodeCall) -> list[Array]:
    x, alpha = call.floats(), call.get("alpha", 1.0)
    return [np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)]


def _selu(call: NodeCall) -> list[Array]:
    x = call.floats()
    alpha = call.get("alpha", float(np.float32(1.67326319217681884765625)))
    gamma = call.get("gamma", float(np.float32(1.05070102214813232421875)))
    return [gamma * np.where(x <= 0, alpha * np.expm1(np.minimum(x, 0)), x)]


def _celu(call: NodeCall) -> list[Array]:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)), which is no number where alpha is 0."""
    x, alpha = call.floats(), np.float64(call.get("alpha", 1.0))
    return [np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)]


def _thresholded_relu(call: NodeCall) -> list[Array]:
    x, alpha = call.floats(), call.get("alpha", 1.0)
    return [np.where(x > alpha, x, 0.0)]


def _shrink(call: NodeCall) -> list[Array]:
    x, bias, ends = call.floats(), call.get("bias", 0.0), call.get("lambd", 0.5)
    return [np.where(x < -ends, x + bias, np.where(x > ends, x - bias, 0.0))]


def _hard_sigmoid(call: NodeCall) -> list[Array]:
    x, alpha, beta = call.floats(), call.get("alpha", float(np.float32(0.2))), call.get("beta", 0.5)
    return [np.clip(alpha * x + beta, 0.0, 1.0)]


def _gelu(call: NodeCall) -> list[Array]:
    x = call.floats()
    if call.only("approximate", "none", "tanh") == "none":
        return [0.5 * x * (1 + _erf(x / math.sqrt(2)))]
    return [0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))]


def _prelu(call: NodeCall) -> list[Array]:
    x, slope = call.floats(), call.floats(1)
    return [np.where(x < 0, slope * x, x)]


def _clip(call: NodeCall) -> list[Array]:
    x = call.need(0)
    if call.opset < 11:
        low, high = call.get("min"), call.get("max")
    else:
        low, high = call.arg(1), call.arg(2)
        if (low is None or high is None) and np.isinf(x).any():
            raise Uncovered("an end that is the type's largest number")
    x = x if low is None else np.where(x < low, low, x)
    return [x if high is None else np.where(x > high, high, x)]


def _divided(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    if (np.asarray(b) == 0).any():
        raise Uncovered("integers divided by zero")
    towards_zero: Array = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return towards_zero.astype(a.dtype)


def _power(call: NodeCall) -> list[Array]:
    base, exponent = call.floats(), call.need(1)
    return [np.power(base, exponent.astype(np.float64))]


def _mean(call: NodeCall) -> list[Array]:
    (total,) = _folded(np.add)(call)
    return [total / len(call.args)]


def _where(call: NodeCall) -> list[Array]:
    return [np.where(call.need(0), call.need(1), call.need(2))]


def _rounded(x: Array) -> Array:
    return np.round(x)  # halves to even, as ONNX wants it


OPERATORS: dict[str, Formula] = {
    "Relu": _relu,
    "LeakyRelu": _leaky_relu,
    "Elu": _elu,
    "Selu": _selu,
    "Celu": _celu,
    "ThresholdedRelu": _thresholded_relu,
    "Shrink": _shrink,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _of_floats(lambda x: x * np.clip(x / 6 + 0.5, 0.0, 1.0)),
    "Gelu": _gelu,
    "PRelu": _prelu,
    "Sigmoid": _of_floats(_sigmoid),
    "Softplus": _of_floats(_softplus),
    "Softsign": _of_floats(lambda x: x / (1 + np.abs(x))),
    "Mish": _of_floats(lambda x: x * np.tanh(_softplus(x))),
    "Tanh": _of_floats(np.tanh),
    "Erf": _of_floats(_erf),
    "Exp": _of_floats(np.exp),
    "Log": _of_floats(np.log),
    "Sqrt": _of_floats(np.sqrt),
    "Reciprocal": _of_floats(lambda x: 1 / x),
    "Floor": _of_floats(np.floor),
    "Ceil": _of_floats(np.ceil),
    "Round": _of_floats(_rounded),
    "Sin": _of_floats(np.sin),
    "Cos": _of_floats(np.cos),
    "Tan": _of_floats(np.tan),
    "Atan": _of_floats(np.arctan),
    "Sinh": _of_floats(np.sinh),
    "Cosh": _of_floats(np.cosh),
    "Abs": _of_numbers(np.abs),
    "Neg": _of_numbers(np.negative),
    "Sign": _of_numbers(np.sign),
    "Not": _of_numbers(np.logical_not),
    "IsNaN": _of_floats(np.isnan),
    "Add": _paired(np.add),
    "Sub": _paired(np.subtract),
    "Mul": _paired(np.multiply),
    "Div": _paired(_divided),
    "Pow": _power,
    "Equal": _paired(np.equal),
    "Greater": _paired(np.greater),
    "GreaterOrEqual": _paired(np.greater_equal),
    "Less": _paired(np.less),
    "LessOrEqual": _paired(np.less_equal),
    "And": _paired(np.logical_and),
    "Or": _paired(np.logical_or),
    "Xor": _paired(np.logical_xor),
    "Max": _folded(np.maximum),
    "Min": _folded(np.minimum),
    "Sum": _folded(np.add),
    "Mean": _mean,
    "Clip": _clip,
    "Where": _where,
}
