"""Operators that sum, normalise or multiply along axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered

Formula = Callable[[NodeCall], list[Array]]


def _matmul(call: NodeCall) -> list[Array]:
    return [np.asarray(np.matmul(call.need(0), call.need(1)))]


def _gemm(call: NodeCall) -> list[Array]:
    """alpha · A' · B' + beta · C."""
    a, b, c = call.floats(0), call.floats(1), call.arg(2)
    a = a.T if call.get("transA", 0) else a
    b = b.T if call.get("transB", 0) else b
    y = call.get("alpha", 1.0) * (a @ b)
    beta = call.get("beta", 1.0)
    return [y if c is None else y + beta * c]


def _exponents(call: NodeCall) -> tuple[Array, tuple[int, ...]]:
    """What softmax raises, moved away from overflow, and the axes that it sums over.

    Before opset 13 a tensor was flattened to two dimensions at the axis, 1 by default.
    """
    x = call.floats()
    if call.opset >= 13:
        axes: tuple[int, ...] = (int(call.get("axis", -1)) % x.ndim,)
    else:
        axis = int(call.get("axis", 1))
        axes = tuple(range(axis % x.ndim if axis != x.ndim else axis, x.ndim))
    if not np.isfinite(x).all():
        raise Uncovered("softmax of infinities or NaN")
    return x - x.max(axis=axes, keepdims=True), axes


def _softmax(call: NodeCall) -> list[Array]:
    x, axes = _exponents(call)
    raised = np.exp(x)
    return [raised / raised.sum(axis=axes, keepdims=True)]


def _log_softmax(call: NodeCall) -> list[Array]:
    x, axes = _exponents(call)
    return [x - np.log(np.exp(x).sum(axis=axes, keepdims=True))]


def _reduced(formula: Callable[..., Array], since: int) -> Formula:
    """A reduction, whose axes are an argument since some opset."""

    def compute(call: NodeCall) -> list[Array]:
        x = call.need(0)
        axes = call.whole(1, "axes", since)
        keep = bool(call.get("keepdims", 1))
        if call.opset >= since and call.get("noop_with_empty_axes", 0) and not axes:
            return [x]
        if not x.size:
            raise Uncovered("a reduction of nothing")
        chosen = tuple(n % x.ndim for n in axes) if axes else None
        return [np.asarray(formula(x, axis=chosen, keepdims=keep))]

    return compute


def _needs_floats(formula: Callable[..., Array]) -> Callable[..., Array]:
    def checked(x: Array, **more: object) -> Array:
        if x.dtype.kind != "f":
            raise Uncovered("a reduction of integers")
        return formula(x, **more)

    return checked


def _log_sum_exp(x: Array, **more: object) -> Array:
    if not np.isfinite(x).all():
        raise Uncovered("infinities")
    most = x.max()
    return np.log(np.sum(np.exp(x - most), **more)) + most  # type: ignore[call-overload, no-any-return]


def _batch_normalization(call: NodeCall) -> list[Array]:
    x, scale, bias, mean, variance = (call.floats(n) for n in range(5))
    call.only("training_mode", 0)
    call.get("momentum")
    if call.opset < 9:
        raise Uncovered("BatchNormalization before opset 9")
    epsilon = call.get("epsilon", float(np.float32(1e-5)))
    shape = (1, -1, *(1,) * (x.ndim - 2))
    scaled = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + epsilon)
    return [scaled * scale.reshape(shape) + bias.reshape(shape)]


def _instance_normalization(call: NodeCall) -> list[Array]:
    x, scale, bias = (call.floats(n) for n in range(3))
    epsilon = call.get("epsilon", float(np.float32(1e-5)))
    axes = tuple(range(2, x.ndim))
    centred = x - x.mean(axis=axes, keepdims=True)
    shape = (1, -1, *(1,) * (x.ndim - 2))
    scaled = centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + epsilon)
    return [scaled * scale.reshape(shape) + bias.reshape(shape)]


def _layer_normalization(call: NodeCall) -> list[Array]:
    x, scale, bias = call.floats(0), call.floats(1), call.arg(2)
    call.only("stash_type", 1)
    axis = int(call.get("axis", -1)) % x.ndim
    epsilon = call.get("epsilon", float(np.float32(1e-5)))
    axes = tuple(range(axis, x.ndim))
    mean = x.mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + epsilon)
    y = (x - mean) * inverse * scale
    return [y if bias is None else y + bias, mean, inverse]


OPERATORS: dict[str, Formula] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "ReduceSum": _reduced(np.sum, 13),
    "ReduceMean": _reduced(_needs_floats(np.mean), 18),
    "ReduceMax": _reduced(np.max, 18),
    "ReduceMin": _reduced(np.min, 18),
    "ReduceProd": _reduced(_needs_floats(np.prod), 18),
    "ReduceL1": _reduced(_needs_floats(lambda x, **m: np.sum(np.abs(x), **m)), 18),
    "ReduceL2": _reduced(_needs_floats(lambda x, **m: np.sqrt(np.sum(x**2, **m))), 18),
    "ReduceSumSquare": _reduced(_needs_floats(lambda x, **m: np.sum(x**2, **m)), 18),
    "ReduceLogSumExp": _reduced(_needs_floats(_log_sum_exp), 18),
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
}
