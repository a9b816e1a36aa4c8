"""Layers that prepare data: numbers to bins, bins to vectors, images to another size."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.axes import as_given, channels_last
from outvote.dialects.keras.reference.call import Call, NotCovered, tensor, wide
from outvote.dialects.keras.reference.sampling import resized


def _rescaling(call: Call) -> list[Array]:
    scale, offset = call.get("scale"), call.get("offset", 0.0)
    if not all(isinstance(number, int | float) for number in (scale, offset)):
        raise NotCovered("Rescaling by other than one number")
    return [call.floats() * scale + offset]


def _discretization(call: Call) -> list[Array]:
    """The number of boundaries that are not above x: a boundary belongs to the bin on its right."""
    call.irrelevant("num_bins epsilon")
    call.only("sparse", False)
    boundaries = call.get("bin_boundaries")
    x = call.input()
    # A number is compared with the boundaries in its own type: 0.1 in float32 is 0.1 there.
    kind = x.dtype if x.dtype.kind == "f" else np.float64
    if boundaries is None or np.isnan(wide(x)).any():
        raise NotCovered("bins that were not given, or NaN to put in one")
    bins = np.digitize(x, np.asarray(boundaries, kind))
    mode = call.only("output_mode", "int", "one_hot", "multi_hot", "count")
    return [_encoded(bins, len(boundaries) + 1, mode, None)]


def _category_encoding(call: Call) -> list[Array]:
    call.only("sparse", False)
    inputs, weights = call.arguments("inputs", "count_weights")
    ids = tensor(inputs)
    count = call.get("num_tokens")
    numbers = ids.astype(np.int64)
    if (numbers != ids).any() or (numbers < 0).any() or (numbers >= count).any():
        raise NotCovered("categories outside the range")
    mode = call.only("output_mode", "multi_hot", "one_hot", "count")
    if weights is not None and mode != "count":
        raise NotCovered("weights without counts")
    return [_encoded(numbers, count, mode, None if weights is None else wide(tensor(weights)))]


def _encoded(bins: Array, depth: int, mode: str, weights: Array | None) -> Array:
    """Bins as they are, each as a vector, or per sample which (or how many) are there."""
    if mode == "int":
        return bins
    if bins.ndim != 2 and mode != "one_hot":
        # Keras documents the last dimension as the sample; its code takes the second.
        raise NotCovered("samples of other than one dimension")
    ones = np.eye(depth)[bins]
    if mode == "one_hot":
        single = bins.ndim > 1 and bins.shape[-1] == 1
        return np.asarray(ones[..., 0, :] if single else ones)
    if weights is not None:
        ones = ones * weights[..., np.newaxis]
    return np.asarray(ones.sum(axis=-2) if mode == "count" else ones.max(axis=-2))


def _center_crop(call: Call) -> list[Array]:
    """The window in the middle; where one row is left over it is cut at the end."""
    call.irrelevant("factor bounding_box_format")
    x = _image(call)
    for axis, name in ((1, "height"), (2, "width")):
        size = call.get(name)
        if size > x.shape[axis]:
            raise NotCovered("CenterCrop of a smaller image")
        first = (x.shape[axis] - size) // 2
        x = np.take(x, range(first, first + size), axis=axis)
    return [as_given(call, x)]


def _resizing(call: Call) -> list[Array]:
    call.irrelevant("fill_mode fill_value factor bounding_box_format")
    for name in ("crop_to_aspect_ratio", "pad_to_aspect_ratio"):
        call.only(name, False)
    how = call.only("interpolation", "bilinear", "nearest")
    if call.get("antialias", False) and how == "bilinear":
        raise NotCovered("Resizing(antialias=True)")
    x = _image(call)
    if x.dtype.kind != "f":
        raise NotCovered("Resizing of whole numbers, which are rounded")
    for axis, name in ((1, "height"), (2, "width")):
        x = resized(x, axis, call.get(name), how)
    return [as_given(call, x)]


def _image(call: Call) -> Array:
    x = call.input()
    if x.ndim != 4:
        raise NotCovered("images without a batch")
    return channels_last(call, wide(x) if x.dtype.kind == "f" else x)


KINDS = {
    "CategoryEncoding": _category_encoding,
    "CenterCrop": _center_crop,
    "Discretization": _discretization,
    "Rescaling": _rescaling,
    "Resizing": _resizing,
}
EXACT = frozenset({"CategoryEncoding", "CenterCrop", "Discretization"})
