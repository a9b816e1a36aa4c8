"""Operators that move numbers and compute none."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.onnx.reference.node_call import NodeCall, Uncovered

Formula = Callable[[NodeCall], list[Array]]


def _identity(call: NodeCall) -> list[Array]:
    return [call.need(0)]


def _dropout(call: NodeCall) -> list[Array]:
    """Without training it passes on what it is given."""
    for name in ("ratio", "seed", "is_test"):
        call.get(name)
    training = call.arg(2)
    if call.opset < 7 or (training is not None and bool(training)):
        raise Uncovered("Dropout in training")
    x = call.need(0)
    return [x, np.ones(x.shape, bool if call.opset >= 10 else x.dtype)]


def _shape(call: NodeCall) -> list[Array]:
    start, end = call.get("start", 0), call.get("end")
    return [np.array(call.need(0).shape, np.int64)[start:end]]


def _reshape(call: NodeCall) -> list[Array]:
    """0 keeps a size, unless allowzero; -1 is what is left."""
    x, wanted = call.need(0), call.whole(1, "shape", 5) or []
    keeps_zero = bool(call.get("allowzero", 0))
    sizes = [x.shape[i] if n == 0 and not keeps_zero else n for i, n in enumerate(wanted)]
    return [x.reshape(sizes)]


def _flatten(call: NodeCall) -> list[Array]:
    x, axis = call.need(0), int(call.get("axis", 1))
    axis = axis + x.ndim if axis < 0 else axis
    return [x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))]


def _transpose(call: NodeCall) -> list[Array]:
    return [np.transpose(call.need(0), call.get("perm"))]


def _squeeze(call: NodeCall) -> list[Array]:
    x, axes = call.need(0), call.whole(1, "axes", 13)
    return [np.squeeze(x, None if axes is None else tuple(axes))]


def _unsqueeze(call: NodeCall) -> list[Array]:
    x, axes = call.need(0), call.whole(1, "axes", 13) or []
    return [np.expand_dims(x, tuple(axes))]


def _concat(call: NodeCall) -> list[Array]:
    return [np.concatenate(call.every(), call.get("axis", 1))]


def _split(call: NodeCall) -> list[Array]:
    x, axis = call.need(0), int(call.get("axis", 0))
    count = int(call.get("num_outputs", len(call.outputs)))
    sizes = call.whole(1, "split", 13)
    if sizes is None:
        each = -(-x.shape[axis] // count)
        if call.opset < 18 and each * count != x.shape[axis]:
            raise Uncovered("a split into unequal parts")
        sizes = [each] * (count - 1) + [x.shape[axis] - each * (count - 1)]
    if sum(sizes) != x.shape[axis]:
        raise Uncovered("a split of other sizes")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _slice(call: NodeCall) -> list[Array]:
    if call.opset < 10:
        raise Uncovered("Slice before opset 10")
    x = call.need(0)
    starts, ends = (call.whole(place, "", 0) or [] for place in (1, 2))
    axes = call.whole(3, "", 0) or list(range(len(starts)))
    steps = call.whole(4, "", 0) or [1] * len(starts)
    chosen = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        chosen[axis] = _range(start, end, step, x.shape[axis])
    return [x[tuple(chosen)]]


def _range(start: int, end: int, step: int, size: int) -> slice:
    """As ONNX clamps it: Python's own, but that an end before the first element is told as None."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    start = min(max(start + size if start < 0 else start, 0), size if step > 0 else size - 1)
    end = min(max(end + size if end < 0 else end, low), high if step > 0 else size - 1)
    return slice(start, None if end < 0 else end, step)


def _gather(call: NodeCall) -> list[Array]:
    x, indices = call.need(0), call.need(1)
    axis = int(call.get("axis", 0))
    if ((indices < -x.shape[axis]) | (indices >= x.shape[axis])).any():
        raise Uncovered("indices that are not there")
    return [np.take(x, indices, axis)]


def _expand(call: NodeCall) -> list[Array]:
    x, wanted = call.need(0), call.whole(1, "", 0) or []
    return (
        [np.asarray(x * np.ones(wanted, x.dtype))]
        if x.dtype != bool
        else [np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(wanted)))]
    )


def _tile(call: NodeCall) -> list[Array]:
    if call.opset < 6:
        raise Uncovered("Tile before opset 6")
    return [np.tile(call.need(0), call.whole(1, "", 0) or [])]


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _pad(call: NodeCall) -> list[Array]:
    if call.opset < 11:
        raise Uncovered("Pad before opset 11")
    x, pads = call.need(0), call.whole(1, "", 0) or []
    mode = call.only("mode", *_PAD_MODES)
    told = call.whole(3, "", 0)
    axes = list(range(x.ndim)) if told is None else [n % x.ndim for n in told]
    widths = [(0, 0)] * x.ndim
    for place, axis in enumerate(axes):
        widths[axis] = (pads[place], pads[place + len(axes)])
    if any(n < 0 for pair in widths for n in pair):
        raise Uncovered("pads below zero")
    value = call.arg(2)
    if mode != "constant":
        return [np.pad(x, widths, _PAD_MODES[mode])]  # type: ignore[call-overload]
    return [np.pad(x, widths, constant_values=0 if value is None else value.reshape(()).item())]


def _nonzero(call: NodeCall) -> list[Array]:
    """Indices of a number without a dimension have no rows, other than NumPy's: so ONNX says."""
    x = call.need(0)
    if not x.ndim:
        return [np.zeros((0, int(x != 0)), np.int64)]
    return [np.array(np.nonzero(x), np.int64)]


def _space_to_depth(call: NodeCall) -> list[Array]:
    """Blocks become channels: the block's place counts first, or with CRD the channel."""
    x, block = call.need(0), int(call.get("blocksize"))
    n, c, h, w = x.shape
    split = x.reshape(n, c, h // block, block, w // block, block)
    crd = call.only("mode", "DCR", "CRD") == "CRD"
    moved = split.transpose((0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4))
    return [moved.reshape(n, c * block * block, h // block, w // block)]


def _depth_to_space(call: NodeCall) -> list[Array]:
    x, block = call.need(0), int(call.get("blocksize"))
    n, c, h, w = x.shape
    inner = c // (block * block)
    crd = call.only("mode", "DCR", "CRD") == "CRD"
    split = (
        x.reshape(n, inner, block, block, h, w) if crd else x.reshape(n, block, block, inner, h, w)
    )
    moved = split.transpose((0, 1, 4, 2, 5, 3) if crd else (0, 3, 4, 1, 5, 2))
    return [moved.reshape(n, inner, h * block, w * block)]


OPERATORS: dict[str, Formula] = {
    "Identity": _identity,
    "Dropout": _dropout,
    "Shape": _shape,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "NonZero": _nonzero,
    "SpaceToDepth": _space_to_depth,
    "DepthToSpace": _depth_to_space,
}
