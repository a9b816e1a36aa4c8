"""Convolutions: a sum over the offsets of the kernel, written as that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.activations import activation
from outvote.dialects.keras.reference.axes import (
    as_given,
    channels_last,
    per_axis,
    same_padding,
    spatial_axes,
)
from outvote.dialects.keras.reference.call import Call, NotCovered


def _convolution(call: Call) -> list[Array]:
    call.irrelevant("rank filters kernel_size")
    kernel, bias = call.unpack(True, call.get("use_bias", True))
    assert kernel is not None
    groups = call.get("groups", 1)
    x = channels_last(call, call.floats())
    parts = zip(np.split(x, groups, axis=-1), np.split(kernel, groups, axis=-1), strict=True)
    y = np.concatenate([_windows_sum(call, part, weights) for part, weights in parts], axis=-1)
    return [_finished(call, y, bias)]


def _depthwise(call: Call) -> list[Array]:
    call.irrelevant("rank kernel_size depth_multiplier")
    kernel, bias = call.unpack(True, call.get("use_bias", True))
    assert kernel is not None
    x = channels_last(call, call.floats())
    return [_finished(call, _per_channel(call, x, kernel), bias)]


def _separable(call: Call) -> list[Array]:
    """Depthwise, then across channels; the bias and the activation come last."""
    call.irrelevant("rank filters kernel_size depth_multiplier")
    depthwise, pointwise, bias = call.unpack(True, True, call.get("use_bias", True))
    assert depthwise is not None
    assert pointwise is not None
    x = channels_last(call, call.floats())
    y = _per_channel(call, x, depthwise) @ pointwise.reshape(pointwise.shape[-2:])
    return [_finished(call, y, bias)]


def _per_channel(call: Call, x: Array, kernel: Array) -> Array:
    """Each channel with its own kernels: output channel c · multiplier + m is kernel m of c."""
    channels = [
        _windows_sum(call, x[..., c : c + 1], kernel[..., c : c + 1, :]) for c in range(x.shape[-1])
    ]
    return np.concatenate(channels, axis=-1)


def _windows_sum(call: Call, x: Array, kernel: Array) -> Array:
    """y[o] = Σ_k x[o · stride + k · dilation] · kernel[k], after padding."""
    rank = spatial_axes(call)
    strides = per_axis(call.get("strides", 1), rank)
    dilation = per_axis(call.get("dilation_rate", 1), rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel.shape, dilation, strict=False)]
    padding = call.only("padding", "valid", "same", "causal")
    pads: Sequence[tuple[int, int]] = [(0, 0)] * rank
    if padding == "same":
        pads = same_padding(x.shape[1:-1], reach, strides)
    elif padding == "causal":
        pads = [(n - 1, 0) for n in reach]  # an output sees its own step and earlier ones
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:-1], reach, strides, strict=True)]
    y = np.zeros((len(x), *sizes, kernel.shape[-1]))
    for offset in np.ndindex(*kernel.shape[:rank]):
        seen = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(offset, dilation, sizes, strides, strict=True)
        )
        y += x[(slice(None), *seen)] @ kernel[offset]
    return y


def _transposed(call: Call) -> list[Array]:
    """The gradient of a convolution: every input is spread over the kernel, then it is cut."""
    call.irrelevant("rank filters kernel_size")
    kernel, bias = call.unpack(True, call.get("use_bias", True))
    assert kernel is not None
    rank = spatial_axes(call)
    x = channels_last(call, call.floats())
    strides = per_axis(call.get("strides", 1), rank)
    dilation = per_axis(call.get("dilation_rate", 1), rank)
    y = _spread(x, kernel, strides, dilation)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel.shape, dilation, strict=False)]
    for axis in range(rank):
        first, size = _cut(call, axis, x.shape[axis + 1], reach[axis], strides[axis])
        y = _from(y, axis + 1, first, size)
    return [_finished(call, y, bias)]


def _spread(x: Array, kernel: Array, strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """y[i · stride + k · dilation] += x[i] · kernel[k]ᵀ."""
    rank = len(strides)
    sizes = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(x.shape[1:-1], strides, kernel.shape, dilation, strict=False)
    ]
    y = np.zeros((len(x), *sizes, kernel.shape[-2]))
    for offset in np.ndindex(*kernel.shape[:rank]):
        reached = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, d, n, s in zip(offset, dilation, x.shape[1:-1], strides, strict=True)
        )
        y[(slice(None), *reached)] += x @ kernel[offset].T
    return y


def _cut(call: Call, axis: int, size: int, reach: int, stride: int) -> tuple[int, int]:
    """Where the output begins in the spread tensor, and its length (Keras' documented shapes)."""
    same = call.only("padding", "valid", "same") == "same"
    extra = call.get("output_padding")
    spread = (size - 1) * stride + reach
    if extra is not None:
        length = spread - (2 * (reach // 2) if same else 0) + per_axis(extra, axis + 1)[axis]
    else:
        length = size * stride + (0 if same else max(reach - stride, 0))
    # "same" cuts both ends; the odd one at the end, as the padding of the convolution has it.
    return (max(spread - length, 0) // 2 if same else 0), length


def _from(y: Array, axis: int, first: int, size: int) -> Array:
    """`size` places from `first` on; past the end there is nothing, which is zero."""
    missing = max(first + size - y.shape[axis], 0)
    y = np.pad(y, [(0, missing if a == axis else 0) for a in range(y.ndim)])
    return np.take(y, range(first, first + size), axis=axis)


def _finished(call: Call, y: Array, bias: Array | None) -> Array:
    if any(n < 1 for n in y.shape):
        raise NotCovered("a window larger than the input")
    if bias is not None:
        y = y + bias.reshape(-1)
    # Activations such as softmax work along the last axis of what the layer returns.
    return activation(call.get("activation"))(as_given(call, y))


KINDS = {
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D"), _convolution),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), _depthwise),
    **dict.fromkeys(("SeparableConv1D", "SeparableConv2D"), _separable),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), _transposed),
}
EXACT: frozenset[str] = frozenset()
