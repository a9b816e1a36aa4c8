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


def _reduced(formula: Callable[..., Array], since: int, of_none: float | None = None) -> Formula:
    """A reduction, whose axes are an argument since some opset, and what it gives for no numbers.

    That is said since opset 13. Without axes, one that does more than reduce does the rest.
    """

    def compute(call: NodeCall) -> list[Array]:
        x = call.need(0)
        axes = call.whole(1, "axes", since)
        keep = bool(call.get("keepdims", 1))
        if call.opset >= since and call.get("noop_with_empty_axes", 0) and not axes:
            return [np.asarray(formula(x, axis=(), keepdims=keep))]
        chosen = tuple(n % x.ndim for n in axes) if axes else tuple(range(x.ndim))
        if x.size:
            return [np.asarray(formula(x, axis=chosen, keepdims=keep))]
        if of_none is None or call.opset < 13 or x.dtype.kind != "f":
            raise Uncovered("a reduction of nothing")
        shape = np.sum(x, axis=chosen, keepdims=keep).shape
        return [np.full(shape, of_none)]

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


def _mean_variance_normalization(call: NodeCall) -> list[Array]:
    """(X - EX) / sqrt(E(X - EX)^2); the function's body adds 1e-9 to what it divides by.

    Where that can be seen, text and body contradict each other, unless the deviation is zero: then
    there is no number by the text.
    """
    x = call.floats()
    axes = tuple(int(n) % x.ndim for n in call.get("axes", [0, 2, 3]))
    centred = x - x.mean(axis=axes, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=axes, keepdims=True))
    none = deviation <= 1e-12 * np.abs(x).max(axis=axes, keepdims=True)
    if ((deviation < _SEEN) & ~none).any():
        raise Uncovered("a deviation to which 1e-9 is not nothing")
    return [np.where(none, np.nan, centred / deviation)]


_SEEN = 0.01  # 1e-9 is one last place of float32 beside it


def _lrn(call: NodeCall) -> list[Array]:
    """X / (bias + alpha / size * the sum of squares of channels near by) ^ beta."""
    x, size = call.floats(), int(call.get("size"))
    alpha, beta = call.get("alpha", float(np.float32(1e-4))), call.get("beta", 0.75)
    channels = x.shape[1]
    squares = [
        (x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(axis=1)
        for c in range(channels)
    ]
    scale = call.get("bias", 1.0) + alpha / size * np.stack(squares, axis=1)
    return [x / scale**beta]


def _cumulated(formula: Callable[..., Array], first: float) -> Formula:
    def compute(call: NodeCall) -> list[Array]:
        x, axis = call.need(0), int(call.need(1).reshape(()))
        turned = np.flip(x, axis) if call.get("reverse", 0) else x
        y = formula(turned, axis=axis, dtype=x.dtype)
        if call.get("exclusive", 0):
            y = np.roll(y, 1, axis)
            y[tuple(slice(0, 1) if a == axis % x.ndim else slice(None) for a in range(x.ndim))] = (
                first
            )
        return [np.flip(y, axis) if call.get("reverse", 0) else y]

    return compute


def _einsum(call: NodeCall) -> list[Array]:
    return [np.asarray(np.einsum(str(call.get("equation")), *call.every()))]


def _dft(call: NodeCall) -> list[Array]:
    """The sum of exp(-2 pi j k n / N) x[n]; its inverse, and the half that real signals need."""
    x, length = call.floats(), call.arg(1)
    if call.opset < 20:
        axis = int(call.get("axis", 1))
    else:
        told = call.arg(2)
        axis = -2 if told is None else int(told.reshape(()))
    axis %= x.ndim
    inverse, onesided = bool(call.get("inverse", 0)), bool(call.get("onesided", 0))
    signal = np.moveaxis(x[..., 0] + 1j * (x[..., 1] if x.shape[-1] == 2 else 0), axis, -1)
    half = inverse and onesided
    count = int(length.reshape(())) if length is not None else signal.shape[-1]
    if half and length is None:
        count = 2 * (signal.shape[-1] - 1)
    if half:  # conjugate symmetry gives the other half
        signal = _fitted(signal, count // 2 + 1)
        mirrored = np.conj(signal[..., 1 : (count + 1) // 2][..., ::-1])
        signal = np.concatenate([signal, mirrored], axis=-1)
    signal = _fitted(signal, count)
    n = np.arange(count)
    y = signal @ np.exp((2j if inverse else -2j) * np.pi * np.outer(n, n) / count)
    y = y / count if inverse else y
    if onesided and not inverse:
        y = y[..., : count // 2 + 1]
    y = np.moveaxis(y, -1, axis)
    return [y.real[..., None] if half else np.stack([y.real, y.imag], axis=-1)]


def _fitted(signal: Array, count: int) -> Array:
    """Cut off, or with zeros behind it."""
    cut = signal[..., :count]
    return np.pad(cut, [(0, 0)] * (cut.ndim - 1) + [(0, count - cut.shape[-1])])


OPERATORS: dict[str, Formula] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "ReduceSum": _reduced(np.sum, 13, 0.0),
    "ReduceMean": _reduced(_needs_floats(np.mean), 18),
    "ReduceMax": _reduced(np.max, 18, -np.inf),
    "ReduceMin": _reduced(np.min, 18, np.inf),
    "ReduceProd": _reduced(_needs_floats(np.prod), 18, 1.0),
    "ReduceL1": _reduced(_needs_floats(lambda x, **m: np.sum(np.abs(x), **m)), 18, 0.0),
    "ReduceL2": _reduced(_needs_floats(lambda x, **m: np.sqrt(np.sum(x**2, **m))), 18, 0.0),
    "ReduceSumSquare": _reduced(_needs_floats(lambda x, **m: np.sum(x**2, **m)), 18, 0.0),
    "ReduceLogSum": _reduced(_needs_floats(lambda x, **m: np.log(np.sum(x, **m))), 18, -np.inf),
    "ReduceLogSumExp": _reduced(_needs_floats(_log_sum_exp), 18, -np.inf),
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "LRN": _lrn,
    "CumSum": _cumulated(np.cumsum, 0.0),
    "CumProd": _cumulated(np.cumprod, 1.0),
    "Einsum": _einsum,
    "DFT": _dft,
}
