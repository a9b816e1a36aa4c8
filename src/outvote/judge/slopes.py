"""Derivatives without a library: from values of a function beside a point.

At a kink (relu at 0, a tie of max) the one-sided derivatives differ, and every number between
them is a right answer. Where the function is not defined on one side, the other side decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from outvote.core.arrays import Array
from outvote.judge.tolerance import (
    JUMP_SHOWS,
    JUMP_STAYS,
    PLACE,
    SLOPE_COARSE,
    SLOPE_ERROR,
    SLOPE_GROWS,
    SLOPE_PLACES,
)


@dataclass(frozen=True)
class Slope:
    """The interval of one-sided derivatives, and how sure its ends are."""

    low: float
    high: float
    error: float

    def __add__(self, other: Slope) -> Slope:
        """Of a sum; each of its terms may take any derivative of its own."""
        return Slope(self.low + other.low, self.high + other.high, self.error + other.error)

    @property
    def is_known(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.error))

    @property
    def is_kink(self) -> bool:
        """Whether there is more than one right answer."""
        return self.is_known and (self.high - self.low) / 2 > self.error

    def is_beyond(self, largest: float) -> bool:
        """Whether every right answer is larger than a type can tell."""
        return self.low - self.error > largest or self.high + self.error < -largest

    def holds(self, value: float, allowed: float) -> bool:
        """Whether a derivative is a right answer, but for what rounding explains."""
        far = self.error + allowed
        return bool(self.low - far <= value <= self.high + far)


@dataclass(frozen=True)
class Point:
    """One element of a gradient: its slope, what targets give, and what rounding allows each."""

    name: str
    place: int  # of the array among the gradients
    index: tuple[int, ...]
    slope: Slope
    given: Mapping[str, float]  # by target
    allowed: Mapping[str, float]  # by target
    # By target: of the function that it computes itself; without one, `slope` stands for it.
    own: Mapping[str, Slope] = field(default_factory=dict)
    by: str = ""  # the target whose function `slope` is of

    @property
    def is_clear(self) -> bool:
        """Whether the slope is known well enough to tell the targets apart."""
        return self.tells(self.slope)

    def tells(self, slope: Slope) -> bool:
        values = list(self.given.values())
        finite = [value for value in values if math.isfinite(value)]
        spread = max(finite) - min(finite) if len(finite) == len(values) else math.inf
        return slope.is_known and slope.error < SLOPE_ERROR * spread

    def slope_on(self, name: str) -> Slope:
        """What a target is held to: the derivative of its own function."""
        own = self.own.get(name, self.slope)
        return own if self.tells(own) else self.slope

    def is_right(self, name: str, value: float, times: float = 1.0) -> bool:
        return self.slope_on(name).holds(value, times * self.allowed[name])

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(name for name, value in self.given.items() if not self.is_right(name, value))

    @property
    def is_disputed(self) -> bool:
        """Whether targets compute different functions beside the point."""
        slopes = {name: self.slope_on(name) for name in self.given}
        return any(
            a.low - a.error - self.allowed[name] > b.high + b.error
            for name, a in slopes.items()
            for b in slopes.values()
        )


UNKNOWN = Slope(math.nan, math.nan, math.nan)


def slope_of(steps: Sequence[float], above: Array, below: Array, place: float) -> Slope:
    """The slope of a sum by the changes of its terms, f(x + h) - f(x) and f(x - h) - f(x).

    A row for each step, a column for each term. Of two terms that have a kink there, each may take
    any of its own derivatives, whatever the other one takes. `place`: the last of the numbers that
    are added, which is their noise.
    """
    h = np.array(steps)
    noise = SLOPE_PLACES * place / h
    with np.errstate(invalid="ignore"):
        bent = _stays(np.abs(above + below) / h[:, None], noise[:, None])
    found = _slope(h, above[:, ~bent].sum(axis=1), below[:, ~bent].sum(axis=1), noise)
    for n in np.flatnonzero(bent):
        found += _slope(h, above[:, n], below[:, n], noise)
    return found


def _slope(h: Array, above: Array, below: Array, noise: Array) -> Slope:
    right, left = above / h, -below / h
    sides = [side for side in (_side(right, noise), _side(left, noise)) if side.is_known]
    if not sides:
        return UNKNOWN
    if len(sides) == 1:
        return sides[0]
    with np.errstate(invalid="ignore"):
        jump, central = np.abs(right - left), _limit((right + left) / 2, noise)
    unbounded = any(math.isinf(end) for side in sides for end in (side.low, side.high))
    if unbounded or _stays(jump, noise):
        return Slope(
            min(side.low for side in sides),
            max(side.high for side in sides),
            max(side.error for side in sides),
        )
    return central


def is_coarse(steps: Sequence[float], above: Array, below: Array) -> bool:
    """Whether a function has a slope by larger steps, the same on both sides, and the smallest
    change nothing: whoever computes it does not do so in float64."""
    h = np.array(steps)
    right, left = above.sum(axis=1) / h, -below.sum(axis=1) / h
    if right[-1] or left[-1]:
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        sizes = np.abs(right[:-1])
        steady = np.abs(right[1:] - right[:-1]) < SLOPE_COARSE * sizes
        alike = np.abs(right[:-1] - left[:-1]) < SLOPE_COARSE * sizes
    return bool((steady & alike & (sizes > 0)).any())


def _side(values: Array, noise: Array) -> Slope:
    """One side alone; a slope that grows without end has no other bound."""
    if not np.isfinite(values).all():
        return UNKNOWN
    sizes = np.abs(values)
    clear = sizes > noise / PLACE["float32"]
    growing = sizes[1:] > SLOPE_GROWS * sizes[:-1]
    if clear.all() and growing.all():
        last = float(values[-1])
        return Slope(min(last, math.inf * last), max(last, math.inf * last), 0.0)
    return _limit(values, noise)


def _limit(values: Array, noise: Array) -> Slope:
    """Where neighbouring steps agree best, given what noise makes of both."""
    errors = np.abs(values[1:] - values[:-1]) + noise[1:]
    best = int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))
    value = float(values[best + 1])
    return Slope(value, value, float(errors[best]))


def _stays(jump: Array, noise: Array) -> Array:
    """Whether a jump is there at the smallest steps that show it, and no smaller than before."""
    shown = jump > JUMP_SHOWS * noise
    last = len(jump) - 1 - np.argmax(shown[::-1], axis=0)
    before = np.maximum(last - 1, 0)
    at = (np.arange(jump.shape[1]),) if jump.ndim > 1 else ()
    twice = shown[(last, *at)] & shown[(before, *at)] & (last > 0)
    stays: Array = twice & (jump[(last, *at)] > JUMP_STAYS * jump[(before, *at)])
    return stays
