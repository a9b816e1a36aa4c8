"""Images of another size: along one axis at a time, without antialiasing."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.dialects.keras.reference.call import NotCovered


def resized(x: Array, axis: int, size: int, how: str) -> Array:
    """Samples at pixel centres: output pixel i stands at (i + 1/2) · old / size - 1/2."""
    old = x.shape[axis]
    if how == "nearest":
        return np.asarray(np.take(x, (2 * np.arange(size) + 1) * old // (2 * size), axis=axis))
    if how != "bilinear":
        raise NotCovered(f"interpolation {how!r}")
    # Outside the outermost centres the outermost pixel goes on.
    places = np.clip((np.arange(size) + 0.5) * old / size - 0.5, 0, old - 1)
    lower = np.floor(places).astype(int)
    upper = np.minimum(lower + 1, old - 1)
    shape = [size if a == axis else 1 for a in range(x.ndim)]
    share = (places - lower).reshape(shape)
    below, above = np.take(x, lower, axis=axis), np.take(x, upper, axis=axis)
    return np.asarray(below * (1 - share) + above * share)
