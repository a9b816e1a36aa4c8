"""Moves numbers and computes none: shapes, slices, indices, padding, order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from outvote.dialects.onnx.workers.draw.node import TYPES, NodeDraw, Table
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Unfit, Value, constant_of

_FAR = (9, -9, 2**31 - 1, -(2**31))


def reshape(d: NodeDraw) -> NewNode:
    x = d.tensor(d.types(0))
    sizes = list(x.shape)
    if all(isinstance(n, int) for n in sizes):
        wanted = _folded(d, [int(n) for n in x.sizes])
    else:  # a free dimension stays in its place
        wanted = [0 if isinstance(n, str) else int(n or 0) for n in sizes]
        wanted = [*wanted, 1] if d.chance() else [*wanted[:1], -1]
    return d.node(x, shape=wanted)


def _folded(d: NodeDraw, sizes: list[int]) -> list[int]:
    """The same numbers in other rows: sizes in another order, joined, or one to be found out."""
    wanted: list[int] = d.rng.sample(sizes, len(sizes))
    while len(wanted) > 1 and d.chance(0.3):
        wanted[-2:] = [wanted[-2] * wanted[-1]]
    if d.chance(0.2):
        wanted.insert(d.between(0, len(wanted)), 1)
    if wanted and d.chance(0.3) and 0 not in sizes:
        wanted[d.between(0, len(wanted) - 1)] = -1
    return wanted


def flatten(d: NodeDraw) -> NewNode:
    x = d.tensor(d.types(0))
    low = -x.rank if d.opset >= 11 else 0
    return d.node(x, **({} if d.chance(0.3) and x.rank else {"axis": d.between(low, x.rank)}))


def squeeze(d: NodeDraw) -> NewNode:
    def shape() -> tuple[int, ...]:
        sizes = list(d.shape_of(d.between(1, 4)))
        sizes[d.between(0, len(sizes) - 1)] = 1
        return tuple(sizes)

    x = d.tensor(d.types(0), lambda value: 1 in value.shape, shape)
    ones = [axis for axis, n in enumerate(x.shape) if n == 1]
    if d.chance(0.3) and all(isinstance(n, int) for n in x.shape):
        return d.node(x)
    chosen = d.rng.sample(ones, d.between(1, len(ones)))
    return d.node(x, axes=[a - x.rank if d.chance(0.3) else a for a in chosen])


def unsqueeze(d: NodeDraw) -> NewNode:
    x = d.ranked(1, 2, 3, 0)
    new = d.between(1, 2)
    rank = x.rank + new
    chosen = d.rng.sample(range(rank), new)
    negative = d.opset >= 11 and d.chance(0.3)
    return d.node(x, axes=[a - rank for a in chosen] if negative else chosen)


def transpose(d: NodeDraw) -> NewNode:
    x = d.tensor(d.types(0))
    return d.node(x, perm=None if d.chance(0.2) else d.rng.sample(range(x.rank), x.rank))


def expand(d: NodeDraw) -> NewNode:
    x = d.ranked(1, 2, 3, 0)
    wanted = [d.between(1, 3) if n == 1 else n if isinstance(n, int) else 1 for n in x.shape]
    if d.chance(0.4):
        wanted = [d.between(1, 3), *wanted]
    if d.chance(0.2):
        wanted = wanted[d.between(0, len(wanted)) :]
    return d.node(x, shape=wanted)


def tile(d: NodeDraw) -> NewNode:
    x = d.least(1)
    return d.node(x, repeats=[d.one_of((1, 2, 3, 1)) for _ in range(x.rank)])


def cut(d: NodeDraw) -> NewNode:
    """Slice: any starts, ends and steps, also beyond the ends and backwards."""
    x = d.least(1)
    axes = d.rng.sample(range(x.rank), d.between(1, min(2, x.rank)))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = x.size(axis)
        step = d.one_of((1, 1, 1, 2, -1, -2)) if d.opset >= 10 else 1
        begin, end = sorted((d.between(0, size), d.between(0, size)))
        if step < 0:
            begin, end = max(0, end - 1), begin - 1 - (size if begin == 0 else 0)
        if d.chance(0.2):
            end = d.one_of(_FAR[2:] if step > 0 else _FAR[3:]) if d.chance() else end
        starts.append(begin if d.chance(0.7) else begin - size)
        ends.append(end)
        steps.append(step)
    negative = d.opset >= 10 and d.chance(0.3)
    told = [a - x.rank for a in axes] if negative else axes
    plain = all(step == 1 for step in steps) and d.chance()
    return d.node(x, starts=starts, ends=ends, axes=told, steps=None if plain else steps)


def pad(d: NodeDraw) -> NewNode:
    x = d.least(1)
    mode = d.setting("mode") if d.chance(0.6) else "constant"
    least = min(int(n) if isinstance(n, int) else 1 for n in x.shape)
    most = {"reflect": least - 1, "wrap": least}.get(mode, 2)
    if most < 0 or (mode in ("edge", "wrap") and least < 1):
        raise Unfit(f"nothing to {mode}")
    free = [not isinstance(n, int) for n in x.shape]
    pads = [0 if free[i % x.rank] else d.between(0, min(2, most)) for i in range(2 * x.rank)]
    given: dict[str, Any] = {"pads": pads, "mode": mode}
    if mode == "constant" and d.chance():
        if d.opset >= 11:
            given["constant_value"] = d.constant(d.array(x.dtype, ()), x.dtype)
        else:
            given["value"] = 1.5
    return d.node(x, **given)


def split(d: NodeDraw) -> NewNode:
    def divisible(value: Value) -> bool:
        return any(isinstance(n, int) and n > 1 for n in value.shape)

    x = d.tensor(d.types(0), divisible, lambda: (*d.shape_of(d.between(0, 2)), d.between(2, 6)))
    axis = d.one_of([a for a, n in enumerate(x.shape) if isinstance(n, int) and n > 1])
    size, count = x.size(axis), d.between(1, 3)
    told = axis - x.rank if d.opset >= 11 and d.chance(0.3) else axis
    if size % count == 0 and d.chance(0.4):
        return d.node(x, outputs=count, axis=told, num_outputs=count)
    count = min(count, size)
    marks = sorted(d.rng.sample(range(1, size), count - 1))
    sizes = [b - a for a, b in zip([0, *marks], [*marks, size], strict=True)]
    return d.node(x, outputs=count, axis=told, split=sizes)


def _indices(d: NodeDraw, shape: list[int], size: int, dtype: str = "int64") -> str:
    """Places along an axis, some counted from the end."""
    if size < 1:
        raise Unfit("no place on an empty axis")
    low = -size if d.opset >= 11 and d.chance(0.4) else 0
    found = d.sketch.numbers.integers(low, size, shape)
    return d.constant(found, dtype)


def _index_type(d: NodeDraw) -> str:
    return d.one_of([t for t in ("int64", "int32") if t in d.types(1)])


def gather(d: NodeDraw) -> NewNode:
    x = d.least(1)
    axis = d.axis(x.rank) if d.opset >= 11 else d.between(0, x.rank - 1)
    shape = [d.between(1, 3) for _ in range(d.between(0, 2))]
    indices = _indices(d, shape, x.size(axis), _index_type(d))
    return d.node(x, indices, **({} if axis == 0 and d.chance() else {"axis": axis}))


def gather_elements(d: NodeDraw) -> NewNode:
    x = d.least(1)
    axis = d.axis(x.rank)
    shape = [d.between(1, n) for n in x.sizes]
    shape[axis] = d.between(1, 4)
    indices = _indices(d, shape, x.size(axis), _index_type(d))
    return d.node(x, indices, axis=axis)


def gather_nd(d: NodeDraw) -> NewNode:
    x = d.least(1)
    sizes = x.sizes
    batch = 1 if d.opset >= 12 and x.rank > 1 and d.chance(0.3) else 0
    depth = d.between(1, x.rank - batch)
    outer = [*sizes[:batch], d.between(1, 3)]
    indices = _tuples(d, outer, sizes[batch : batch + depth])
    return d.node(x, indices, **({"batch_dims": batch} if batch else {}))


def _tuples(d: NodeDraw, outer: list[int], sizes: tuple[int, ...]) -> str:
    columns = [d.sketch.numbers.integers(0, max(1, n), outer) for n in sizes]
    return d.constant(np.stack(columns, axis=-1).astype(np.int64))


def scatter_elements(d: NodeDraw) -> NewNode:
    """Each place is written once, unless what is written there is added up."""
    x = d.least(1)
    axis = d.axis(x.rank)
    sizes = x.sizes
    shape = [d.between(1, n) for n in sizes]
    reduction = d.settings("reduction")
    rows = d.sketch.numbers.permuted(
        np.broadcast_to(
            np.arange(sizes[axis]).reshape(
                [-1 if a == axis % x.rank else 1 for a in range(x.rank)]
            ),
            [n if a != axis % x.rank else sizes[axis] for a, n in enumerate(shape)],
        ),
        axis=axis,
    )
    indices = np.take(rows, range(shape[axis]), axis=axis)
    updates = d.operand(x.dtype, shape)
    return d.node(x, d.constant(indices, _index_type(d)), updates, axis=axis, **reduction)


def scatter_nd(d: NodeDraw) -> NewNode:
    x = d.least(1)
    sizes = x.sizes
    depth = d.between(1, x.rank)
    places = math.prod(sizes[:depth])
    count = d.between(1, min(3, places)) if places else 0
    if not count:
        raise Unfit("nowhere to write")
    chosen = d.rng.sample(range(places), count)
    indices = np.stack(np.unravel_index(chosen, sizes[:depth]), axis=-1).astype(np.int64)
    updates = d.operand(x.dtype, [count, *sizes[depth:]])
    return d.node(x, d.constant(indices), updates, **d.settings("reduction"))


def compress(d: NodeDraw) -> NewNode:
    x = d.least(1)
    if d.chance(0.3):
        condition = d.array("bool", (math.prod(x.sizes),))
        return d.node(x, d.constant(condition))
    axis = d.axis(x.rank) if d.opset >= 11 else d.between(0, x.rank - 1)
    return d.node(x, d.constant(d.array("bool", (x.size(axis),))), axis=axis)


def one_hot(d: NodeDraw) -> NewNode:
    depth = d.between(1, 5)
    low = -depth if d.opset >= 11 else 0
    shape = d.shape_of(d.between(1, 3))
    kinds = [t for t in ("int64", "int32", "float32") if t in d.types(0)]
    indices = d.constant(d.sketch.numbers.integers(low, depth, shape), d.one_of(kinds))
    values = d.tensor(d.types(2), lambda value: value.shape == (2,), lambda: (2,))
    kind = d.one_of([t for t in ("int64", "int32", "float32") if t in d.types(1)])
    axis = d.between(-len(shape) - 1, len(shape))
    return d.node(indices, d.constant(depth, kind), values, axis=axis)


def top_k(d: NodeDraw) -> NewNode:
    x = d.least(1)
    axis = d.axis(x.rank) if d.opset >= 11 else d.between(0, x.rank - 1)
    count = d.between(1, max(1, x.size(axis)))
    if d.opset < 10:
        return d.node(x, outputs=2, axis=axis, k=count)
    largest = {} if d.opset < 11 else d.settings("largest")  # unsorted, the order is free
    return d.node(x, d.constant(np.array([count], np.int64)), outputs=2, axis=axis, **largest)


def trilu(d: NodeDraw) -> NewNode:
    x = d.least(2)
    k = d.constant(np.int64(d.one_of((0, 1, -1, 2, 9, -9)))) if d.chance() else None
    return d.node(x, k=k, **d.settings("upper"))


def reverse_sequence(d: NodeDraw) -> NewNode:
    x = d.least(2)
    batch = d.between(0, 1)
    time = x.size(1 - batch)
    if time < 1:
        raise Unfit("no steps")
    lengths = d.sketch.numbers.integers(1, time + 1, x.size(batch))
    return d.node(x, d.constant(lengths, "int64"), batch_axis=batch, time_axis=1 - batch)


def blocks(d: NodeDraw) -> NewNode:
    """Depth to space, and back."""
    size = d.one_of((2, 1, 3))
    deep = d.operator.name == "DepthToSpace"

    def divisible(value: Value) -> bool:
        sizes = value.shape[1:2] if deep else value.shape[2:]
        whole = [n for n in sizes if isinstance(n, int)]
        unit = size * size if deep else size
        return value.rank == 4 and len(whole) == len(sizes) and all(n % unit == 0 for n in whole)

    def shape() -> tuple[int, ...]:
        batch, channels, height, width = d.shape_of(4)
        if deep:
            return (batch, size * size * d.between(1, 2), height, width)
        return (batch, channels, size * d.between(1, 3), size * d.between(1, 3))

    return d.node(d.tensor(d.types(0), divisible, shape), blocksize=size, **d.settings("mode"))


def crop(d: NodeDraw) -> NewNode:
    x = d.least(1)
    axes = d.rng.sample(range(x.rank), d.between(1, x.rank))
    whole = len(axes) == x.rank and d.chance()
    chosen = sorted(axes) if whole else axes
    sizes = [max(1, x.size(axis) + d.between(-2, 2)) for axis in chosen]
    return d.node(x, shape=sizes, axes=None if whole else chosen)


def count_up(d: NodeDraw) -> NewNode:
    """Range, of constants: otherwise nobody knows how long it gets."""
    dtype = d.dtype(d.types(0))
    start, delta, steps = d.between(-3, 3), d.one_of((1, 2, -1, 3)), d.between(0, 6)
    limit = start + delta * steps - (d.between(0, abs(delta) - 1) if delta > 0 and steps else 0)
    return d.node(*(d.constant(n, dtype) for n in (start, limit, delta)))


def filled(d: NodeDraw) -> NewNode:
    shape = d.constant(np.array(d.any_shape(), np.int64))
    if d.chance(0.3):
        return d.node(shape)
    dtype = d.dtype([t for t in d.operator.outputs[0].types if t in TYPES])
    return d.node(shape, value=constant_of("", d.array(dtype, (1,)), dtype))


def unique(d: NodeDraw) -> NewNode:
    """Unique: sorted, or the order is a matter of taste no runtime has to share."""
    x = d.tensor(d.types(0))
    axis = {} if d.chance() or not x.rank else {"axis": d.axis(x.rank)}
    return d.node(x, outputs=d.between(1, 4), sorted=1, **axis)


def update_cache(d: NodeDraw) -> NewNode:
    x = d.ranked(3, 4)
    axis = x.rank - 2
    size = x.size(axis)
    count = d.between(1, size)
    mode = d.setting("mode") if d.chance() else "linear"
    highest = size - 1 if mode == "circular" else size - count
    places = d.sketch.numbers.integers(0, highest + 1, x.size(0))
    shape = list(x.sizes)
    shape[axis] = count
    update = d.operand(x.dtype, shape)
    return d.node(x, update, d.constant(places, "int64"), axis=axis, mode=mode)


def identity_types(d: NodeDraw) -> NewNode:
    return d.node(d.tensor([t for t in d.types(0) if t in TYPES]))


def shape_part(d: NodeDraw) -> NewNode:
    x = d.tensor(d.types(0))
    return d.node(x, **(d.settings("start", "end") if d.opset >= 15 else {}))


def arg_extreme(d: NodeDraw) -> NewNode:
    x = d.least(1)
    low = -x.rank if d.opset >= 11 else 0
    settings = d.settings("keepdims", "select_last_index")
    return d.node(x, axis=d.between(low, x.rank - 1), **settings)


def reduce(d: NodeDraw) -> NewNode:
    """Over some axes, all of them, or none where that may be asked for."""
    x = d.tensor(d.types(0))
    axes = d.axes(x.rank) if x.rank and d.chance(0.75) else None
    if axes is not None and d.opset < 11:
        axes = sorted({axis % x.rank for axis in axes})
    return d.node(x, axes=axes, **d.settings("keepdims", "noop_with_empty_axes"))


def cumulate(d: NodeDraw) -> NewNode:
    x = d.least(1)
    axis = d.constant(d.axis(x.rank), d.one_of(("int64", "int32")))
    return d.node(x, axis, **d.settings("exclusive", "reverse"))


_REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
    "ReduceSum ReduceSumSquare"
).split()

TABLE: Table = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Expand": expand,
    "Tile": tile,
    "Slice": cut,
    "Pad": pad,
    "Split": split,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Compress": compress,
    "OneHot": one_hot,
    "TopK": top_k,
    "Trilu": trilu,
    "ReverseSequence": reverse_sequence,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), blocks),
    "CenterCropPad": crop,
    "Range": count_up,
    "ConstantOfShape": filled,
    "Unique": unique,
    "TensorScatter": update_cache,
    "Identity": identity_types,
    "Shape": shape_part,
    **dict.fromkeys(("ArgMax", "ArgMin"), arg_extreme),
    **dict.fromkeys(_REDUCTIONS, reduce),
    **dict.fromkeys(("CumSum", "CumProd"), cumulate),
}
