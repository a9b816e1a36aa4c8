"""Numbers put to scale, and those that are stored in few bits."""

from __future__ import annotations

import numpy as np

from outvote.dialects.onnx.workers.draw.node import NodeDraw, Table
from outvote.dialects.onnx.workers.draw.numbers import Range
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Unfit, Value


def _positive(d: NodeDraw, dtype: str, *shape: int) -> str:
    return d.constant(d.array(dtype, shape, Range.POSITIVE), dtype)


def _some(d: NodeDraw, dtype: str, *shape: int) -> str:
    return d.constant(d.array(dtype, shape), dtype)


def batch_norm(d: NodeDraw) -> NewNode:
    x = d.least(2)
    channels = x.size(1)
    scale, shift = _some(d, x.dtype, channels), _some(d, x.dtype, channels)
    mean, variance = _some(d, x.dtype, channels), _positive(d, x.dtype, channels)
    return d.node(x, scale, shift, mean, variance, **d.settings("epsilon"))


def instance_norm(d: NodeDraw) -> NewNode:
    x = d.image()
    channels = x.size(1)
    scale, shift = _some(d, x.dtype, channels), _some(d, x.dtype, channels)
    return d.node(x, scale, shift, **d.settings("epsilon"))


def group_norm(d: NodeDraw) -> NewNode:
    x = d.image()
    channels = x.size(1)
    groups = d.one_of([n for n in (1, 2, 3, channels) if n and channels % n == 0])
    size = channels if d.opset >= 21 else groups
    scale, shift = _some(d, x.dtype, size), _some(d, x.dtype, size)
    return d.node(x, scale, shift, num_groups=groups, **d.settings("epsilon"))


def layer_norm(d: NodeDraw) -> NewNode:
    x = d.least(1)
    axis = d.axis(x.rank)
    shape = [x.size(n) for n in range(axis % x.rank, x.rank)]
    inputs = [_some(d, x.dtype, *shape)]
    root = d.operator.name == "RMSNormalization"
    if not root and d.chance(0.6):
        inputs.append(_some(d, x.dtype, *shape))
    count = 1 if root or d.chance(0.7) else d.between(2, 3)
    told = {} if axis == -1 and d.chance() else {"axis": axis}
    return d.node(x, *inputs, outputs=count, **told, **d.settings("epsilon"))


def response(d: NodeDraw) -> NewNode:
    """Local response normalisation: over channels of images."""
    return d.node(
        d.ranked(4, 4, 3, 5), size=d.setting("size"), **d.settings("bias", "beta", "alpha")
    )


def along_axes(d: NodeDraw) -> NewNode:
    """Mean and variance over some axes. ONNX' own inference fails where none are named."""
    x = d.ranked(4, types=("float32",))  # its definition adds a float32
    return d.node(x, axes=d.axes(4))


def quantize(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t != "int32"])
    axis, shape = _granularity(d, x)
    dtype = d.one_of([t for t in ("uint8", "int8") if t in d.types(2)])
    scale_type = x.dtype if x.dtype in d.types(1) else "float32"
    scale = d.constant(d.array(scale_type, shape, Range.INNER), scale_type)
    point = [d.constant(d.array(dtype, shape), dtype)] if shape or d.chance(0.7) else []
    return d.node(x, scale, *point, **axis)


def dequantize(d: NodeDraw) -> NewNode:
    x = d.tensor([t for t in d.types(0) if t in ("uint8", "int8", "int32")])
    axis, shape = _granularity(d, x)
    scale = d.constant(d.array("float32", shape, Range.INNER), "float32")
    point = []
    if x.dtype != "int32" and d.chance(0.7):
        point = [d.constant(d.array(x.dtype, shape), x.dtype)]
    return d.node(x, scale, *point, **axis)


def _granularity(d: NodeDraw, x: Value) -> tuple[dict[str, int], tuple[int, ...]]:
    """One scale for all, or one for each slice along an axis."""
    if d.opset < 13 or not x.rank or d.chance(0.6):
        return {}, ()
    axis = d.axis(x.rank)
    return {"axis": axis}, (x.size(axis),)


def quantized_matmul(d: NodeDraw) -> NewNode:
    a = d.ranked(2, 3, types=("uint8", "int8"))
    b_type = d.one_of(("uint8", "int8"))
    width = d.between(1, 5)
    shape = (a.size(-1), width)
    y_type = d.one_of(("uint8", "int8"))

    def scaled(dtype: str) -> list[str]:
        return [_scale(d), d.constant(d.between(0, 5), dtype)]

    b = d.constant(d.array(b_type, shape), b_type)
    return d.node(a, *scaled(a.dtype), b, *scaled(b_type), *scaled(y_type))


def quantized_conv(d: NodeDraw) -> NewNode:
    x = d.ranked(4, types=("uint8", "int8"))
    sides = [d.between(1, min(3, max(1, x.size(axis)))) for axis in (2, 3)]
    outputs, channels = d.between(1, 3), x.size(1)
    if 0 in x.sizes:
        raise Unfit("nothing to move a window over")
    w_type = d.one_of(("uint8", "int8"))
    w = d.constant(d.array(w_type, (outputs, channels, *sides)), w_type)
    inputs = [_scale(d), d.constant(d.between(0, 5), x.dtype), w]
    inputs += [_scale(d), d.constant(0, w_type), _scale(d), d.constant(d.between(0, 5), x.dtype)]
    if d.chance(0.4):
        inputs.append(d.constant(d.array("int32", (outputs,)), "int32"))
    return d.node(x, *inputs)


def _scale(d: NodeDraw) -> str:
    return d.constant(np.float32(d.one_of((0.5, 0.25, 0.1, 0.03, 1.0))))


TABLE: Table = {
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_norm),
    "LRN": response,
    "MeanVarianceNormalization": along_axes,
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "QLinearMatMul": quantized_matmul,
    "QLinearConv": quantized_conv,
}
