"""Layers that move, repeat, cut or pad numbers, and those that do nothing at inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.axes import as_given, channels_last, per_axis, spatial_axes
from outvote.dialects.keras.reference.call import Call, NotCovered, wide
from outvote.dialects.keras.reference.sampling import resized


def _moved(call: Call) -> Array:
    """What only moves stays what it is: whole numbers whole, floats as float64."""
    x = call.input()
    return wide(x) if x.dtype.kind == "f" else x


def _nothing(call: Call) -> list[Array]:
    """Noise and penalties belong to training."""
    call.irrelevant("rate noise_shape stddev l1 l2")
    if call.kind.startswith("SpatialDropout"):
        call.irrelevant("data_format")
    return [_moved(call)]


def _flatten(call: Call) -> list[Array]:
    x = _moved(call)
    last = channels_last(call, x) if x.ndim > 1 else x
    return [last.reshape(len(x), -1)]


def _reshape(call: Call) -> list[Array]:
    x = _moved(call)
    return [x.reshape(len(x), *call.get("target_shape"))]


def _permute(call: Call) -> list[Array]:
    return [np.transpose(_moved(call), (0, *call.get("dims")))]


def _repeat_vector(call: Call) -> list[Array]:
    return [np.repeat(_moved(call)[:, np.newaxis], call.get("n"), axis=1)]


def _pairs(value: Any, rank: int) -> list[tuple[int, int]]:
    """(before, after) per axis, of any form that Keras takes."""
    if rank == 1:
        return [per_axis(value, 2)]  # type: ignore[list-item]
    each = value if isinstance(value, Sequence) else [value] * rank
    return [per_axis(item, 2) for item in each]  # type: ignore[misc]


def _cropping(call: Call) -> list[Array]:
    x = _channels_last_of(call)
    pairs = _pairs(call.get("cropping"), spatial_axes(call))
    kept = tuple(
        slice(before, n - after) for (before, after), n in zip(pairs, x.shape[1:], strict=False)
    )
    y = x[(slice(None), *kept)]
    if not y.size:
        raise NotCovered("nothing is left")
    return [_as_given_to(call, y)]


def _zero_padding(call: Call) -> list[Array]:
    x = _channels_last_of(call)
    pairs = _pairs(call.get("padding"), spatial_axes(call))
    return [_as_given_to(call, np.pad(x, [(0, 0), *pairs, (0, 0)]))]


def _up_sampling(call: Call) -> list[Array]:
    x = _channels_last_of(call)
    sizes = per_axis(call.get("size", 2), spatial_axes(call))
    how = call.only("interpolation", "nearest", "bilinear")
    if how == "bilinear":
        x = wide(x)
    for axis, factor in enumerate(sizes, start=1):
        grown = x.shape[axis] * factor
        x = resized(x, axis, grown, how)
    return [_as_given_to(call, x)]


# Of the 1D kinds some have no data_format: their channels are always last.
def _channels_last_of(call: Call) -> Array:
    return channels_last(call, _moved(call)) if "data_format" in call.config else _moved(call)


def _as_given_to(call: Call, y: Array) -> Array:
    return as_given(call, y) if "data_format" in call.config else y


def _masking(call: Call) -> list[Array]:
    """A step whose numbers all are the mask value becomes zeros."""
    x = _moved(call)
    value = call.get("mask_value", 0.0)
    return [np.where((x != value).any(axis=-1, keepdims=True), x, 0)]


_DO_NOTHING = (
    "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity "
    "SpatialDropout1D SpatialDropout2D SpatialDropout3D"
).split()
_SIZES = ("1D", "2D", "3D")
KINDS = {
    **dict.fromkeys(_DO_NOTHING, _nothing),
    **dict.fromkeys((f"Cropping{n}" for n in _SIZES), _cropping),
    **dict.fromkeys((f"ZeroPadding{n}" for n in _SIZES), _zero_padding),
    **dict.fromkeys((f"UpSampling{n}" for n in _SIZES), _up_sampling),
    "Flatten": _flatten,
    "Masking": _masking,
    "Permute": _permute,
    "RepeatVector": _repeat_vector,
    "Reshape": _reshape,
}
EXACT = frozenset(KINDS) - {"UpSampling2D"}  # which may interpolate
