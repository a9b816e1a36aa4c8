"""One file per domain constraint of DeepXplore (section 6.2): which changes keep an input real.

A constraint is one function, `move(x, gradient, seed, memory, rules)`: the next inputs of a batch,
each of them legal. `memory` is a dict of arrays with one row per input; it is empty at first, and
rows of inputs that have finished are taken out of it. A user's own file offers the same function.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules

Memory = dict[str, Array]
Move = Callable[[Array, Array, Array, Memory, Rules], Array]


def built_in(name: str) -> Move:
    """The constraint of that name."""
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    move: Move = module.move
    return move


def normalised(gradient: Array) -> Array:
    """Each input's gradient with a root mean square of 1; where it is zero, it stays zero."""
    axes = tuple(range(1, gradient.ndim))
    size = np.sqrt(np.mean(np.square(gradient, dtype=np.float64), axis=axes, keepdims=True))
    return np.divide(gradient, size, out=np.zeros_like(gradient), where=size > 0)


def permitted(gradient: Array, rules: Rules) -> Array:
    """Where a value may move as the gradient wants: features may have one direction, or none."""
    grow = True if rules.increase is None else rules.increase
    shrink = True if rules.decrease is None else rules.decrease
    return np.where(gradient > 0, grow, shrink)


def window_sums(values: Array, height: int, width: int) -> Array:
    """Sums over all windows of (instance, height, width) arrays, by a table of running sums."""
    table = np.zeros((len(values), values.shape[1] + 1, values.shape[2] + 1))
    table[:, 1:, 1:] = values.cumsum(axis=1, dtype=np.float64).cumsum(axis=2)
    return (
        table[:, height:, width:]
        - table[:, :-height, width:]
        - table[:, height:, :-width]
        + table[:, :-height, :-width]
    )


def window_masks(places: Array, shape: tuple[int, ...], height: int, width: int) -> Array:
    """A mask per instance: true inside its window, given as an index into `window_sums`."""
    columns = shape[2] - width + 1
    top, left = places // columns, places % columns
    rows = np.arange(shape[1])[None, :] - top[:, None]
    cols = np.arange(shape[2])[None, :] - left[:, None]
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((cols >= 0) & (cols < width))[
        :, None, :
    ]
    return np.asarray(inside.reshape(*inside.shape, *(1,) * (len(shape) - 3)))


def over_channels(values: Array) -> Array:
    """(instance, height, width, ...) summed to (instance, height, width)."""
    return np.asarray(values.sum(axis=tuple(range(3, values.ndim)), dtype=np.float64))
