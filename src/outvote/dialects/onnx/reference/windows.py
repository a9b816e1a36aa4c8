"""Operators that look through a window: convolutions and pools."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered

Index = tuple[int, ...]


@dataclass(frozen=True)
class Window:
    """Where a window stands: its size, steps, and the padding before and after each axis."""

    kernel: Index
    strides: Index
    dilations: Index
    before: Index
    after: Index
    ceil: bool = False

    def sizes(self, sizes: Sequence[int]) -> Index:
        """How many places there are along each axis."""
        found = []
        for axis, size in enumerate(sizes):
            span = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            padded = size + self.before[axis] + self.after[axis]
            steps = (padded - span) / self.strides[axis]
            count = (math.ceil(steps) if self.ceil else math.floor(steps)) + 1
            # A window must begin inside the tensor or the padding before it.
            if self.ceil and (count - 1) * self.strides[axis] >= size + self.before[axis]:
                count -= 1
            found.append(count)
        if any(count < 1 for count in found):
            raise Uncovered("a window larger than what it looks at")
        return tuple(found)

    def elements(self, place: Index) -> Iterator[tuple[Index, Index]]:
        """(position in the kernel, position in the tensor) of all that is seen from a place."""
        for offset in itertools.product(*map(range, self.kernel)):
            yield (
                offset,
                tuple(
                    place[a] * self.strides[a] - self.before[a] + offset[a] * self.dilations[a]
                    for a in range(len(place))
                ),
            )


def window_of(call: NodeCall, sizes: Sequence[int], kernel: Sequence[int]) -> Window:
    """The window that a node's attributes tell."""
    rank = len(sizes)
    strides = tuple(call.get("strides") or (1,) * rank)
    dilations = tuple(call.get("dilations") or (1,) * rank)
    pads = tuple(call.get("pads") or (0,) * (2 * rank))
    auto = call.only("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    ceil = bool(call.get("ceil_mode", 0))
    before, after = pads[:rank], pads[rank:]
    if auto == "VALID":
        before = after = (0,) * rank
    elif auto != "NOTSET":
        before, after = _same(auto, sizes, kernel, strides, dilations)
    return Window(tuple(kernel), strides, dilations, before, after, ceil)


def _same(
    auto: str,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[Index, Index]:
    small, large = [], []
    for axis, size in enumerate(sizes):
        span = dilations[axis] * (kernel[axis] - 1) + 1
        total = max(0, (math.ceil(size / strides[axis]) - 1) * strides[axis] + span - size)
        small.append(total // 2)
        large.append(total - total // 2)
    first, second = tuple(small), tuple(large)
    return (first, second) if auto == "SAME_UPPER" else (second, first)


def _inside(position: Index, sizes: Sequence[int]) -> bool:
    return all(0 <= n < size for n, size in zip(position, sizes, strict=True))


def _moved(position: Index, by: Index) -> Index:
    return tuple(n + m for n, m in zip(position, by, strict=True))


@dataclass(frozen=True)
class Convolution:
    """Channels by group, the kernel by group, and where its window stands."""

    x: Array  # (batch, group, channel, *sizes)
    weight: Array  # (group, feature, channel, *kernel)
    window: Window
    places: Index

    def seen(self) -> list[tuple[Array, Array]]:
        """For each position in the kernel: what it sees from every place, and its weights."""
        window, rank = self.window, len(self.places)
        around = zip(window.before, window.after, strict=True)
        padded, whole = np.pad(self.x, [(0, 0)] * 3 + list(around)), (slice(None),) * 3
        found = []
        for offset in itertools.product(*map(range, window.kernel)):
            begin = [offset[a] * window.dilations[a] for a in range(rank)]
            ends = [begin[a] + (self.places[a] - 1) * window.strides[a] + 1 for a in range(rank)]
            steps = tuple(map(slice, begin, ends, window.strides))
            found.append((padded[whole + steps], self.weight[whole + offset]))
        return found

    def joined(self, y: Array) -> Array:
        """Features of all groups, one behind the other."""
        return y.reshape(y.shape[0], -1, *self.places)


def convolution(call: NodeCall, x: Array, weight: Array) -> Convolution:
    """What a node's attributes make of a tensor and a kernel."""
    sizes, kernel = x.shape[2:], weight.shape[2:]
    told = call.get("kernel_shape")
    if told is not None and tuple(told) != kernel:
        raise Uncovered("a kernel_shape that is not the weight's")
    group = int(call.get("group", 1))
    window = window_of(call, sizes, kernel)
    batch, channels, features = x.shape[0], weight.shape[1], weight.shape[0]
    if x.shape[1] != channels * group or features % group:
        raise Uncovered("channels that do not fit the groups")
    if any((*window.before, *window.after)) and not np.isfinite(weight).all():
        raise Uncovered("infinity or NaN times padding")
    return Convolution(
        x.reshape(batch, group, channels, *sizes),
        weight.reshape(group, features // group, channels, *kernel),
        window,
        window.sizes(sizes),
    )


def _conv(call: NodeCall) -> list[Array]:
    return [convolved(call, call.floats(0), call.floats(1), call.arg(2))]


def convolved(call: NodeCall, x: Array, weight: Array, bias: Array | None) -> Array:
    """Y[n, m] at a place: the sum over channels of its group and the kernel of X · W, and B."""
    told = convolution(call, x, weight)
    y = told.joined(sum(np.einsum("ngc...,gfc->ngf...", some, w) for some, w in told.seen()))
    return y if bias is None else y + bias.reshape(1, -1, *(1,) * len(told.places))


def _pooled(call: NodeCall) -> tuple[Array, Window]:
    x = call.floats()
    if len(call.outputs) > 1:
        raise Uncovered("indices of a pool")
    kernel = call.get("kernel_shape")
    return x, window_of(call, x.shape[2:], kernel)


def _max_pool(call: NodeCall) -> list[Array]:
    x, window = _pooled(call)
    call.only("storage_order", 0)
    if np.isnan(x).any():
        raise Uncovered("the largest of numbers with NaN")
    places = window.sizes(x.shape[2:])
    y = np.zeros((*x.shape[:2], *places))
    for place in itertools.product(*map(range, places)):
        seen = [
            x[(slice(None),) * 2 + position]
            for _, position in window.elements(place)
            if _inside(position, x.shape[2:])
        ]
        if not seen:
            raise Uncovered("a window over padding alone")
        y[(slice(None),) * 2 + place] = np.max(seen, axis=0)
    return [y]


def _average_pool(call: NodeCall) -> list[Array]:
    x, window = _pooled(call)
    counts_padding = bool(call.get("count_include_pad", 0))
    sizes = x.shape[2:]
    padded = tuple(n + b + a for n, b, a in zip(sizes, window.before, window.after, strict=True))
    places = window.sizes(sizes)
    y = np.zeros((*x.shape[:2], *places))
    for place in itertools.product(*map(range, places)):
        positions = [position for _, position in window.elements(place)]
        seen = [x[(slice(None),) * 2 + p] for p in positions if _inside(p, sizes)]
        counted = len(seen)
        if counts_padding:  # what ceil_mode adds beyond the padding counts for nothing
            shifted = [
                tuple(n + b for n, b in zip(p, window.before, strict=True)) for p in positions
            ]
            counted = sum(_inside(p, padded) for p in shifted)
        if not counted:
            raise Uncovered("a window over nothing")
        y[(slice(None),) * 2 + place] = np.sum(seen, axis=0) / counted
    return [y]


def _global_average(call: NodeCall) -> list[Array]:
    x = call.floats()
    return [x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)]


def _global_max(call: NodeCall) -> list[Array]:
    x = call.floats()
    return [x.max(axis=tuple(range(2, x.ndim)), keepdims=True)]


OPERATORS = {
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average,
    "GlobalMaxPool": _global_max,
}
