"""Images looked at elsewhere: resizing, grids, regions, boxes."""

from __future__ import annotations

import numpy as np

from outvote.dialects.onnx.workers.draw.node import NodeDraw, Table
from outvote.dialects.onnx.workers.draw.numbers import Range
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Unfit, Value

_SCALES = (2.0, 0.5, 1.0, 1.5, 3.0, 0.7)


def resize(d: NodeDraw) -> NewNode:
    x = d.ranked(4, 4, 3, types=[t for t in d.types(0) if t != "bool"])
    if 0 in x.sizes:
        raise Unfit("nothing to resize")
    settings = d.settings("mode", "coordinate_transformation_mode", share=0.7)
    mode = settings.get("mode", "nearest")
    if mode == "cubic" and x.rank != 4:
        raise Unfit("cubes are of images")
    if mode == "nearest":
        settings |= d.settings("nearest_mode")
    if mode == "cubic":
        settings |= d.settings("cubic_coeff_a", "exclude_outside")
    if mode != "nearest":
        settings |= d.settings("antialias", share=0.2)
    if d.opset < 11:
        return d.node(x, d.constant(np.array(_scales(d, x), np.float32)), mode="nearest")
    cropped = settings.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if cropped:
        settings |= d.settings("extrapolation_value")
    roi = [0.0] * x.rank + [1.0] * x.rank
    if cropped:
        roi[2 : x.rank] = [round(d.rng.uniform(0, 0.4), 2) for _ in range(x.rank - 2)]
        roi[x.rank + 2 :] = [round(d.rng.uniform(0.6, 1.2), 2) for _ in range(x.rank - 2)]
    needed = cropped or d.operator.inputs[1].option == "single"
    told = d.constant(np.array(roi, np.float32)) if needed else ""
    if d.operator.inputs[2].option == "single" and not cropped:
        return d.node(x, told, d.constant(np.array(_scales(d, x), np.float32)), **settings)
    if d.chance(0.6):
        return d.node(x, told, d.constant(np.array(_scales(d, x), np.float32)), **settings)
    sizes = [*x.sizes[:2], *(d.between(1, 2 * x.size(axis)) for axis in range(2, x.rank))]
    return d.node(x, told, "", d.constant(np.array(sizes, np.int64)), **settings)


def _scales(d: NodeDraw, x: Value) -> list[float]:
    return [1.0, 1.0, *(d.one_of(_SCALES) for _ in range(x.rank - 2))]


def grid_sample(d: NodeDraw) -> NewNode:
    x = d.ranked(4)
    if 0 in x.sizes:
        raise Unfit("nothing to sample")
    shape = (x.size(0), d.between(1, 4), d.between(1, 4), 2)
    grid_type = x.dtype if x.dtype in d.types(1) else "float32"
    grid = d.array(grid_type, shape, Range.NORMAL) * 0.7
    settings = d.settings("mode", "padding_mode", "align_corners")
    return d.node(x, d.constant(grid, grid_type), **settings)


def affine_grid(d: NodeDraw) -> NewNode:
    flat = d.chance(0.7)
    batch, sides = d.between(1, 2), [d.between(1, 4) for _ in range(2 if flat else 3)]
    shape = (batch, len(sides), len(sides) + 1)
    theta = d.tensor(d.types(0), lambda v: v.shape == shape, lambda: shape)
    size = d.constant(np.array([batch, d.between(1, 3), *sides], np.int64))
    return d.node(theta, size, **d.settings("align_corners"))


def _boxes(d: NodeDraw, count: int, x: Value) -> list[list[float]]:
    """Corners inside an image, upper left before lower right."""
    found = []
    for _ in range(count):
        xs = sorted(d.rng.uniform(0, x.size(3)) for _ in range(2))
        ys = sorted(d.rng.uniform(0, x.size(2)) for _ in range(2))
        found.append([round(n, 1) for n in (xs[0], ys[0], xs[1], ys[1])])
    return found


def roi_align(d: NodeDraw) -> NewNode:
    x = d.ranked(4)
    count = d.between(1, 3)
    rois = d.constant(np.array(_boxes(d, count, x)), x.dtype)
    which = d.constant([d.between(0, x.size(0) - 1) for _ in range(count)], "int64")
    names = ("mode", "output_height", "output_width", "sampling_ratio", "spatial_scale",
             "coordinate_transformation_mode")  # fmt: skip
    return d.node(x, rois, which, **d.settings(*names))


def roi_pool(d: NodeDraw) -> NewNode:
    x = d.ranked(4)
    count = d.between(1, 3)
    rows = [
        [float(d.between(0, x.size(0) - 1)), *(float(int(n)) for n in box)]
        for box in _boxes(d, count, x)
    ]
    pooled = [d.between(1, 3) for _ in range(2)]
    return d.node(x, d.constant(np.array(rows), x.dtype), pooled_shape=pooled)


def suppress(d: NodeDraw) -> NewNode:
    """Boxes with distinct scores; otherwise the order is free."""
    batch, classes, count = d.between(1, 2), d.between(1, 2), d.between(1, 5)
    corners = np.sort(d.sketch.numbers.uniform(0, 4, (batch, count, 2, 2)), axis=2)
    boxes = d.constant(np.float32(corners.reshape(batch, count, 4)))
    scores = d.sketch.numbers.permutation(batch * classes * count) / 7 + 0.1
    inputs = [boxes, d.constant(np.float32(scores.reshape(batch, classes, count)))]
    bounds = [(d.between(1, 3), "int64"), (0.5, "float32"), (0.2, "float32")]
    inputs += [d.constant([bound], dtype) for bound, dtype in bounds[: d.between(1, 3)]]
    return d.node(*inputs, **d.settings("center_point_box"))


TABLE: Table = {
    "Resize": resize,
    "GridSample": grid_sample,
    "AffineGrid": affine_grid,
    "RoiAlign": roi_align,
    "MaxRoiPool": roi_pool,
    "NonMaxSuppression": suppress,
}
