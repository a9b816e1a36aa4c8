"""What rounding explains between targets, output by output and row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest

import numpy as np

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.judge.compare import Settings, mismatch_of
from outvote.judge.distances import looks
from outvote.judge.tolerance import (
    ELEMENT,
    LOST_DIGITS,
    NOISE_FACTOR,
    PLACE,
    layer_tolerance,
    model_tolerance,
)


@dataclass(frozen=True)
class Gap:
    """How far two results are apart where rounding explains it least, and what it explains."""

    distance: float
    limit: float

    @property
    def explained(self) -> bool:
        return self.times < 1

    @property
    def times(self) -> float:
        """The distance as a multiple of what rounding explains; NaN is beyond any."""
        if self.distance == 0:
            return 0.0
        times = self.distance / self.limit if self.limit else math.inf
        return math.inf if math.isnan(times) else times


NO_GAP = Gap(0.0, 1.0)
MISMATCH = Gap(math.inf, 0.0)


@dataclass(frozen=True)
class Rounding:
    """Limits: what needs no explanation (by output and look), raised by noise where measured."""

    base: tuple[tuple[float, float], ...]
    noise: tuple[Array, ...] = ()  # by output: (look, row); empty: not measured
    factor: float = NOISE_FACTOR
    steps: tuple[bool, ...] = ()  # by output: whole numbers, which noise does not explain
    # By output: what is no farther apart than that is equal, however small both are.
    floors: tuple[float, ...] = ()

    @property
    def is_measured(self) -> bool:
        return bool(self.noise)

    @property
    def moved(self) -> float:
        """The largest movement of a row, relative to its largest element."""
        return max((float(found[0].max(initial=0.0)) for found in self.noise), default=0.0)

    @property
    def tolerance(self) -> float:
        """The largest relative distance that is explained anywhere."""
        lowest = max((relative for relative, _ in self.base), default=0.0)
        return max(lowest, self.factor * self.moved)

    def with_noise(self, noise: Sequence[Array]) -> Rounding:
        return replace(self, noise=tuple(noise))

    def limits(self, output: int, rows: int) -> Array:
        """Of one output: (look, row)."""
        lowest = np.repeat(np.array(self.base[output])[:, None], rows, axis=1)
        stepped = bool(self.steps) and self.steps[output]
        if not self.noise or stepped or self.noise[output].shape[1] != rows:
            return lowest
        limits: Array = np.maximum(lowest, self.factor * self.noise[output])
        return limits

    def gap(self, a: Outputs, b: Outputs) -> Gap:
        """Where two results are least explained; a mismatch is nowhere explained."""
        if mismatch_of(a, b) is not None:
            return MISMATCH
        found = [
            _worst(
                looks(x, self._raised(place, x, y), dtype),
                self.limits(place, len(x) if x.ndim else 1),
            )
            for place, (x, y, dtype) in enumerate(zip(a.rows, b.rows, a.dtypes, strict=True))
        ]
        return max(found, key=lambda gap: gap.times, default=NO_GAP)

    def _raised(self, output: int, x: Array, y: Array) -> Array:
        """One side, made equal to the other where they are not farther apart than the floor."""
        if not self.floors or x.dtype.kind != "f":
            return y
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(x.astype(np.float64) - y.astype(np.float64))
        return np.where(apart <= self.floors[output], x, y)

    def explains(self, a: Outputs, b: Outputs) -> bool:
        return self.gap(a, b).explained

    def gaps(self, outputs: Mapping[str, Outputs]) -> dict[tuple[str, str], Gap]:
        """Of every pair of targets."""
        return {(a, b): self.gap(outputs[a], outputs[b]) for a, b in combinations(outputs, 2)}

    def is_close(self, outputs: Mapping[str, Outputs]) -> bool:
        """Whether a pair is beyond the limits, and not far: a better measure may explain it."""
        return any(1 <= gap.times < LOST_DIGITS for gap in self.gaps(outputs).values())


def _worst(found: Array, limits: Array) -> Gap:
    """The largest multiple of its limit, NaN before all; told in relative distances."""
    if not found.size:
        return NO_GAP
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(np.isnan(found), np.inf, found / limits)
        times = np.where(found == 0, 0.0, times)
    look, row = np.unravel_index(int(np.argmax(times)), times.shape)
    distance = float(found[0, row])
    limit = float(limits[0, row])
    if look and distance < limit * times[look, row]:  # what the first look does not show
        limit = distance / float(times[look, row])
    return Gap(distance, limit)


def layer_rounding(outputs: Iterable[Outputs], terms: int, factor: float) -> Rounding:
    """For one layer, or a few, that add so many terms.

    Whole numbers that a layer gives for equal tensors differ by steps, not by degrees: whether
    rounding took one is for the verdict to say, which moves the input and looks.
    """
    found = list(outputs)
    base = _by_output(found, lambda dtype: layer_tolerance(dtype, terms))
    types = [{o.dtypes[i] for o in found if i < len(o.dtypes)} for i in range(len(base))]
    return Rounding(base, (), factor, tuple(not some & set(PLACE) for some in types))


def model_rounding(outputs: Iterable[Outputs], settings: Settings) -> Rounding:
    """For a whole model."""

    def tolerance(dtype: str) -> float:
        return model_tolerance(dtype) if settings.tolerance is None else settings.tolerance

    return Rounding(_by_output(outputs, tolerance), (), settings.noise_factor)


def _by_output(
    outputs: Iterable[Outputs], tolerance: Callable[[str], float]
) -> tuple[tuple[float, float], ...]:
    """The widest of what targets give, output by output."""
    types = zip_longest(*(found.dtypes for found in outputs))
    return tuple(
        (max(tolerance(dtype) for dtype in some if dtype is not None), ELEMENT) for some in types
    )
