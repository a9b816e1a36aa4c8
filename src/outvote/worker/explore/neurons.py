"""Neuron coverage as DeepXplore defines it (4.1, 7.1), and DeepGauge's criteria, on plain arrays.

A neuron is one channel of a layer: its mean over space. All that is kept is one row of numbers
per neuron that later inputs can only raise, so that a growing test set costs one pass over what
is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array


@dataclass(frozen=True)
class Activations:
    """What the neurons of one model did with a batch of inputs."""

    neurons: Array  # (input, neuron)
    lows: Array  # (input, layer): smallest output of the layer, over channels and space
    highs: Array
    widths: Sequence[int]  # neurons of each layer

    def scaled(self) -> Array:
        """Each neuron within [0, 1] of its layer (7.1); a layer that is constant gives 0."""
        low = np.repeat(self.lows, self.widths, axis=1)
        span = np.repeat(self.highs - self.lows, self.widths, axis=1)
        shape = self.neurons.shape
        with np.errstate(invalid="ignore"):
            scaled = np.divide(self.neurons - low, span, out=np.zeros(shape), where=span > 0)
        return np.asarray(scaled)

    def top(self, k: int) -> Array:
        """Which neurons are among the k largest of their layer for some input (DeepGauge TKNC)."""
        found, start = [], 0
        for width in self.widths:
            layer = self.neurons[:, start : start + width]
            order = np.argsort(-layer, axis=1, kind="stable")[:, :k]
            hit = np.zeros(width, bool)
            hit[np.unique(order)] = True
            found.append(hit)
            start += width
        return np.concatenate(found) if found else np.zeros(0, bool)


def sections(neurons: Array, low: Array, high: Array, count: int) -> Array:
    """Which of `count` equal sections between low and high each neuron reached (DeepGauge KMNC)."""
    hit = np.zeros((neurons.shape[1], count), bool)
    span = high - low
    inside = (neurons >= low) & (neurons <= high) & (span > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        place = np.minimum(np.nan_to_num((neurons - low) / span * count), count - 1).astype(int)
    rows, columns = np.nonzero(inside)
    hit[columns, place[rows, columns]] = True
    return hit
