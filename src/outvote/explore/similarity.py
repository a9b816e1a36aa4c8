"""Structural similarity of many pictures with many others at once.

SSIM is that of Wang et al. 2004, over square windows of equal weight: a covariance of two windows
is then a product of matrices, and thousands of pictures are compared in a second.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from outvote.core.arrays import Array

_WINDOW, _STRIDE = 8, 4
_K1, _K2 = 0.01, 0.03


def ssim(a: Array, b: Array, span: float) -> Array:
    """SSIM of every picture of `a` with every one of `b`; `span` is the range of their values."""
    c1, c2 = (_K1 * span) ** 2, (_K2 * span) ** 2
    total = np.zeros((len(a), len(b)))
    count = 0
    for x, y in zip(_windows(a), _windows(b), strict=True):
        mean_x, mean_y = x.mean(axis=1), y.mean(axis=1)
        x, y = x - mean_x[:, None], y - mean_y[:, None]
        covariance = x @ y.T / x.shape[1]
        variance_x, variance_y = (x**2).mean(axis=1), (y**2).mean(axis=1)
        light = (2 * np.outer(mean_x, mean_y) + c1) / (np.add.outer(mean_x**2, mean_y**2) + c1)
        structure = (2 * covariance + c2) / (np.add.outer(variance_x, variance_y) + c2)
        total += light * structure
        count += 1
    return total / count


def _windows(pictures: Array) -> Iterator[Array]:
    """The same window of all pictures, as rows; all channels of it together."""
    height, width = pictures.shape[1:3]
    side = min(_WINDOW, height, width)
    for top in _starts(height, side):
        for left in _starts(width, side):
            part = pictures[:, top : top + side, left : left + side]
            yield part.reshape(len(part), -1).astype(np.float64)


def _starts(size: int, side: int) -> list[int]:
    return [*range(0, size - side, _STRIDE), size - side]
