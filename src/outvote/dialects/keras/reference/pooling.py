"""Pooling: the largest or the mean of each window; padding is neither looked at nor counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.axes import (
    as_given,
    channels_last,
    per_axis,
    same_padding,
    spatial_axes,
)
from outvote.dialects.keras.reference.call import Call, NotCovered, mask_of, tensor, wide

Reduce = Callable[..., Array]
Span = tuple[int, int]


def _pooling(call: Call) -> list[Array]:
    rank = spatial_axes(call)
    x = channels_last(call, call.input())
    sizes = per_axis(call.get("pool_size", 2), rank)
    steps = call.get("strides")
    strides = sizes if steps is None else per_axis(steps, rank)
    pads = [(0, 0)] * rank
    if call.only("padding", "valid", "same") == "same":
        pads = same_padding(x.shape[1:-1], sizes, strides)
    spans = [
        list(_spans(*numbers)) for numbers in zip(x.shape[1:-1], sizes, strides, pads, strict=True)
    ]
    return [as_given(call, _reduced(call, x, spans))]


def _spans(size: int, window: int, stride: int, pad: Span) -> Iterator[Span]:
    """The places of the input, without padding, that each window covers."""
    for start in range(-pad[0], size + pad[1] - window + 1, stride):
        yield max(start, 0), min(start + window, size)


def _adaptive(call: Call) -> list[Array]:
    """Window i of n over a size: from floor(i · size / n) to ceil((i + 1) · size / n)."""
    x = channels_last(call, call.input())
    wanted = per_axis(call.get("output_size"), spatial_axes(call))
    spans = [
        [(i * size // n, -(-(i + 1) * size // n)) for i in range(n)]
        for size, n in zip(x.shape[1:-1], wanted, strict=True)
    ]
    return [as_given(call, _reduced(call, x, spans))]


def _reduced(call: Call, x: Array, spans: Sequence[Sequence[Span]]) -> Array:
    if not all(spans):
        raise NotCovered("a window larger than the input")
    reduce = _reduction(call)
    counts = [len(each) for each in spans]
    axes = tuple(range(1, x.ndim - 1))
    windows = []
    for place in np.ndindex(*counts):
        ends = [each[i] for each, i in zip(spans, place, strict=True)]
        window = x[(slice(None), *(slice(*span) for span in ends))]
        windows.append(reduce(window, axis=axes))
    return np.stack(windows, axis=1).reshape(len(x), *counts, x.shape[-1])


def _reduction(call: Call) -> Reduce:
    return _largest if "Max" in call.kind else _mean


def _largest(x: Array, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    """NaN is the largest where there is one, as in IEEE 754's `maximum`.

    Libraries that drop it take that for a bug: https://github.com/pytorch/pytorch/issues/7645,
    https://github.com/tensorflow/tensorflow/issues/125965.
    """
    largest = np.asarray(np.max(x, axis=axis, keepdims=keepdims))
    return wide(largest) if x.dtype.kind == "f" else largest


def _mean(x: Array, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    if x.dtype.kind != "f":
        raise NotCovered("the mean of whole numbers")
    return np.asarray(np.mean(wide(x), axis=axis, keepdims=keepdims))


def _global(call: Call) -> list[Array]:
    """Over all places."""
    return [_over_all(call, call.input(), None)]


def _global_mean_of_steps(call: Call) -> list[Array]:
    """The one global pooling that reads a mask: it leaves steps out."""
    inputs, given = call.arguments("inputs", "mask")
    mask = mask_of(inputs) if given is None else tensor(given).astype(bool)
    return [_over_all(call, tensor(inputs), mask)]


def _over_all(call: Call, x: Array, mask: Array | None) -> Array:
    x = channels_last(call, x)
    keepdims = bool(call.get("keepdims", False))
    axes = tuple(range(1, x.ndim - 1))
    if mask is None:
        y = _reduction(call)(x, axis=axes, keepdims=keepdims)
    elif not mask.any(axis=1).all():
        raise NotCovered("the mean of no steps")
    else:
        kept = mask[..., np.newaxis]
        y = (wide(x) * kept).sum(axis=axes, keepdims=keepdims)
        y = y / kept.sum(axis=axes, keepdims=keepdims)
    return as_given(call, y) if keepdims else y


_SIZES = ("1D", "2D", "3D")
KINDS = {
    **{f"{how}Pooling{n}": _pooling for n in _SIZES for how in ("Max", "Average")},
    **{f"Global{how}Pooling{n}": _global for n in _SIZES for how in ("Max", "Average")},
    "GlobalAveragePooling1D": _global_mean_of_steps,
    **{f"Adaptive{how}Pooling{n}": _adaptive for n in _SIZES for how in ("Max", "Average")},
}
EXACT = frozenset(kind for kind in KINDS if "Max" in kind)
