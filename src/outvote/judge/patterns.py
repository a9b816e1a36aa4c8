"""Inconsistency patterns (CRADLE, section III-B): how the distances spread over the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from outvote.core.arrays import Array


@dataclass(frozen=True)
class Pattern:
    """A histogram of distances. Equal patterns of one pair are one unique inconsistency."""

    bins: tuple[str, ...]
    counts: tuple[int, ...]


def pattern_class(distances: Array, k: int) -> Pattern:
    """Bins 16, 15-8, 7-4, 3-2, 1, 0 for k = 5; the like for other k."""
    top = 2 ** (k - 1)
    edges = [top, *(2**i for i in reversed(range(k - 1)))]
    names = [str(top)]
    names += [f"{2 * low - 1}-{low}" if low > 1 else "1" for low in edges[1:]]
    return _pattern(distances, [*edges, 0], [*names, "0"])


def pattern_mad(distances: Array) -> Pattern:
    """Five equal bins on [0, 1]."""
    names = ["0.8-1.0", "0.6-0.8", "0.4-0.6", "0.2-0.4", "0.0-0.2"]
    return _pattern(distances, [0.8, 0.6, 0.4, 0.2, 0.0], names)


def pattern_relative(distances: Array) -> Pattern:
    """One bin per power of ten: relative distances span many of them; two where faults lie."""
    edges = [3e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 0.0]
    names = ["≥3e-1", "≥1e-1", "≥1e-2", "≥1e-3", "≥1e-4", "≥1e-5", "≥1e-6", "<1e-6"]
    return _pattern(distances, edges, names)


def _pattern(distances: Array, lower: Sequence[float], names: Sequence[str]) -> Pattern:
    """Counts per bin, each given by its lower edge, highest first; NaN has a bin of its own."""
    missing = np.isnan(distances)
    found = distances[~missing]
    reached = [int((found >= low).sum()) for low in lower]  # the first bin has no upper edge
    counts = [reached[0], *(b - a for a, b in pairwise(reached))]
    if missing.any():
        return Pattern(("NaN", *names), (int(missing.sum()), *counts))
    return Pattern(tuple(names), tuple(counts))
