"""Where the channels are, and one number for all axes or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.call import Call


def spatial_axes(call: Call) -> int:
    """How many axes the window of a `2D` kind moves along."""
    return next(n for n in (1, 2, 3) if f"{n}D" in call.kind)


def channels_last(call: Call, x: Array) -> Array:
    """The input with its channels at the end."""
    return np.moveaxis(x, 1, -1) if _first(call) else x


def as_given(call: Call, y: Array) -> Array:
    """An output with its channels where the layer has them."""
    return np.moveaxis(y, -1, 1) if _first(call) else y


def _first(call: Call) -> bool:
    return bool(call.only("data_format", "channels_last", "channels_first") == "channels_first")


def per_axis(value: Any, count: int) -> tuple[int, ...]:
    """One number for each axis."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * count


def same_padding(sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]) -> Any:
    """(before, after) per axis so that ceil(size / stride) windows fit; the odd one is after."""
    pads = []
    for size, window, stride in zip(sizes, windows, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads
