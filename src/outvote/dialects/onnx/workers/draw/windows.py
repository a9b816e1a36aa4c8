"""Windows over images and sequences: convolution and pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from outvote.dialects.onnx.workers.draw.node import NodeDraw, Table
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Unfit, Value

_STRIDES = (1, 1, 2, 3)
_DILATIONS = (1, 1, 1, 2)


def _windowed(d: NodeDraw) -> Value:
    """An image with sides that a window can move over."""
    x = d.image()
    if 0 in x.sizes:
        raise Unfit("nothing to move a window over")
    return x


def _window(d: NodeDraw, x: Value, *, auto: bool = True) -> dict[str, Any]:
    """Kernel, strides, dilations and padding that leave at least one place for the window."""
    sides = [x.size(axis) for axis in range(2, x.rank)]
    dilations = [d.one_of(_DILATIONS) for _ in sides]
    padded = d.chance(0.5)
    told: dict[str, Any] = {"kernel_shape": [], "pads": []}
    for side, dilation in zip(sides, dilations, strict=True):
        most = max(1, (side - 1) // dilation + 1)
        kernel = d.between(1, min(most, 4))
        told["kernel_shape"].append(kernel)
        reach = kernel - 1  # more would leave windows with padding alone
        told["pads"].append([d.between(0, reach) if padded else 0 for _ in range(2)])
    told["pads"] = [pair[i] for i in range(2) for pair in told["pads"]]
    if not padded and d.chance(0.7):
        del told["pads"]
    if auto and "pads" not in told and d.chance(0.4):
        told["auto_pad"] = d.setting("auto_pad")
    if any(n > 1 for n in dilations):
        told["dilations"] = dilations
    if d.chance(0.6):
        told["strides"] = [d.one_of(_STRIDES) for _ in sides]
    return told


def convolve(d: NodeDraw) -> NewNode:
    x = _windowed(d)
    window = _window(d, x)
    channels = x.size(1)
    group = d.one_of([n for n in (1, 1, 1, 2, 3, channels) if n and channels % n == 0])
    outputs = group * d.between(1, 3)
    kernel = window["kernel_shape"]
    if d.chance(0.3):
        del window["kernel_shape"]
    if group > 1:
        window["group"] = group
    shape = (outputs, channels // group, *kernel)
    if d.operator.name == "ConvInteger":
        return _integers(d, x, shape, window)
    inputs = [d.weights(x.dtype, shape)]
    if d.chance(0.6):
        inputs.append(d.weights(x.dtype, (outputs,)))
    return d.node(x, *inputs, **window)


def _integers(d: NodeDraw, x: Value, shape: tuple[int, ...], window: dict[str, Any]) -> NewNode:
    dtype = d.dtype(d.types(1))
    points = [d.constant(d.between(0, 5), t) for t in (x.dtype, dtype)]
    return d.node(x, d.weights(dtype, shape), *points[: d.between(0, 2)], **window)


def convolve_transposed(d: NodeDraw) -> NewNode:
    x = _windowed(d)
    window = _window(d, x, auto=False)
    channels = x.size(1)
    group = d.one_of([n for n in (1, 1, 2, channels) if n and channels % n == 0])
    width = d.between(1, 3)
    kernel = window["kernel_shape"]
    strides = window.get("strides", [1] * len(kernel))
    if max(strides) > 1 and d.chance(0.4):
        window["output_padding"] = [d.between(0, n - 1) for n in strides]
    if group > 1:
        window["group"] = group
    if "pads" not in window and d.chance(0.3):
        window["auto_pad"] = d.setting("auto_pad")
        window.pop("output_padding", None)
    inputs = [d.weights(x.dtype, (channels, width, *kernel))]
    if d.chance(0.6):
        inputs.append(d.weights(x.dtype, (group * width,)))
    return d.node(x, *inputs, **window)


def deform(d: NodeDraw) -> NewNode:
    x = d.ranked(4)
    window = _window(d, x, auto=False)
    kernel, channels = window["kernel_shape"], x.size(1)
    pads = window.setdefault("pads", [0, 0, 0, 0])
    strides, dilations = window.get("strides", [1, 1]), window.get("dilations", [1, 1])
    sides = [
        (x.size(2 + i) + pads[i] + pads[2 + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i]
        + 1
        for i in range(2)
    ]
    outputs, batch = d.between(1, 3), x.size(0)
    area = math.prod(kernel)
    offset = d.constant(0.5 * d.array(x.dtype, (batch, 2 * area, *sides)), x.dtype)
    inputs = [d.weights(x.dtype, (outputs, channels, *kernel)), offset]
    if d.chance():
        inputs.append(d.weights(x.dtype, (outputs,)))
        if d.chance():
            inputs.append(d.constant(d.array(x.dtype, (batch, area, *sides)), x.dtype))
    return d.node(x, *inputs, **window)


def pool(d: NodeDraw) -> NewNode:
    x = _windowed(d)
    settings = d.settings("ceil_mode", "count_include_pad", "p")
    if d.operator.name == "MaxPool" and d.chance(0.2):
        return d.node(x, outputs=2, **_window(d, x), **settings)
    return d.node(x, **_window(d, x), **settings)


def over_all(d: NodeDraw) -> NewNode:
    """Pooling over all sides."""
    return d.node(_windowed(d), **d.settings("p"))


def unpool(d: NodeDraw) -> NewNode:
    """Back to where pooling without gaps and overlaps took numbers from."""
    x = d.ranked(4, 3)
    sizes = x.sizes
    kernel = [d.between(1, 3) for _ in sizes[2:]]
    wide = [side * k for side, k in zip(sizes[2:], kernel, strict=True)]
    place = np.zeros(sizes, np.int64)
    strides = np.cumprod([1, *reversed((*sizes[:2], *wide))])[::-1][1:]
    for axis, (side, step) in enumerate(zip(sizes, strides, strict=True)):
        grid = np.arange(side).reshape([-1 if a == axis else 1 for a in range(x.rank)])
        place = place + grid * (kernel[axis - 2] if axis > 1 else 1) * int(step)
    return d.node(x, d.constant(place), kernel_shape=kernel, strides=kernel)


def columns_to_image(d: NodeDraw) -> NewNode:
    image = [d.between(2, 5) for _ in range(2)]
    block = [d.between(1, n) for n in image]
    places = math.prod(n - b + 1 for n, b in zip(image, block, strict=True))
    area = math.prod(block)

    def fits(value: Value) -> bool:
        rows = value.shape[1:2]
        whole = value.rank == 3 and isinstance(rows[0], int) and rows[0] % area == 0
        return whole and value.shape[2] == places

    shape = (d.between(1, 2), area * d.between(1, 2), places)
    x = d.tensor(d.types(0), fits, lambda: shape)
    told = [d.constant(np.array(n, np.int64)) for n in (image, block)]
    return d.node(x, *told)


def convolve_causally(d: NodeDraw) -> NewNode:
    x = d.ranked(3)
    channels, kernel = x.size(1), d.between(1, 4)
    inputs = [d.weights(x.dtype, (channels, 1, kernel))]
    if d.chance():
        inputs.append(d.weights(x.dtype, (channels,)))
    return d.node(x, *inputs, outputs=2, **d.settings("activation"))


TABLE: Table = {
    **dict.fromkeys(("Conv", "ConvInteger"), convolve),
    "ConvTranspose": convolve_transposed,
    "DeformConv": deform,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), over_all),
    "MaxUnpool": unpool,
    "Col2Im": columns_to_image,
    "CausalConvWithState": convolve_causally,
}
