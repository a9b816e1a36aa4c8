"""Holds the outputs of two targets against each other, by every metric that applies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.target import Target
from outvote.core.truth import Truth
from outvote.judge.distances import accuracy, distance_relative
from outvote.judge.metrics import Rivals, all_metrics
from outvote.judge.patterns import Pattern
from outvote.judge.tolerance import (
    CLASS_THRESHOLD,
    ELEMENT,
    MAD_THRESHOLD,
    NOISE_FACTOR,
    P_PERCENT,
    TOP_K,
)

METRICS = tuple(all_metrics())


@dataclass(frozen=True)
class Settings:
    """Thresholds. Those of CRADLE have the paper's defaults; the noise ones are ours."""

    metrics: tuple[str, ...] = METRICS
    k: int = TOP_K
    class_threshold: float = CLASS_THRESHOLD  # T_C
    mad_threshold: float = MAD_THRESHOLD  # T_M
    p: float = P_PERCENT  # percent of inputs that must reach the threshold (and at least one)
    tolerance: float | None = None  # relative distance that needs no explanation; None: by dtype
    noise_factor: float = NOISE_FACTOR  # how many times the noise floor still counts as rounding


@dataclass(frozen=True)
class Measured:
    """One metric on one output of a pair of targets."""

    name: str
    output: int
    threshold: float
    distances: Array
    pattern: Pattern
    needed: float = 1.0  # inputs that must reach the threshold
    # `relative` looks twice: an element that is off by so much of itself counts as well.
    elements: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def reached(self) -> Array:
        """Which inputs count; what is equal never does, whatever is tolerated."""
        reached: Array = ~(self.distances < self.threshold) & (self.distances != 0)
        return reached | ~(self.elements < ELEMENT) if self.elements.size else reached

    @property
    def inconsistent(self) -> bool:
        return bool(self.reached.sum() >= self.needed)

    @property
    def triggering(self) -> Array:
        """Indices of the inputs that count, worst first; NaN is worst."""
        order = np.argsort(
            -np.where(np.isnan(self.distances), np.inf, self.distances), kind="stable"
        )
        return order[self.reached[order]]

    @property
    def maximum(self) -> float:
        """The largest distance; NaN when any input has none; 0 when there is no input."""
        return float(self.distances.max(initial=0.0))


@dataclass(frozen=True)
class Comparison:
    """A pair of targets: every metric, or why they cannot be compared number by number."""

    targets: tuple[str, str]
    mismatch: str | None
    measured: tuple[Measured, ...]

    @property
    def inconsistent(self) -> bool:
        return self.mismatch is not None or any(m.inconsistent for m in self.measured)

    @property
    def worst_input(self) -> int:
        """CRADLE's most inconsistent input: farthest by the metric that shows it best."""
        for measured in self.measured:
            if measured.inconsistent:
                return int(measured.triggering[0])
        relative = [m for m in self.measured if m.name == "relative" and m.distances.size]
        return int(np.nan_to_num(relative[0].distances, nan=np.inf).argmax()) if relative else 0


def compare_all(
    outputs: Mapping[str, Outputs],
    truth: Truth,
    settings: Settings,
    pairs: Iterable[tuple[str, str]] | None = None,
) -> list[Comparison]:
    """These pairs of targets, or every one, in the order given."""
    return [
        compare((a, b), outputs[a], outputs[b], truth, settings)
        for a, b in (combinations(outputs, 2) if pairs is None else pairs)
    ]


def pairs_of(targets: Mapping[str, Target]) -> list[tuple[str, str]]:
    """Which targets are held against each other: all, but a twin against its original alone."""

    def is_held(a: Target, b: Target) -> bool:
        if a.original and b.original:
            return False
        twin, other = (a, b) if a.original else (b, a)
        return not twin.original or twin.original not in targets or twin.original == other.name

    return [(a, b) for a, b in combinations(targets, 2) if is_held(targets[a], targets[b])]


def compare(
    names: tuple[str, str], a: Outputs, b: Outputs, truth: Truth, settings: Settings
) -> Comparison:
    mismatch = mismatch_of(a, b)
    if mismatch is not None:
        return Comparison(names, mismatch, ())
    measured: list[Measured] = []
    for index, (x, y) in enumerate(zip(a.rows, b.rows, strict=True)):
        known = truth if index == 0 and _fits(truth, x, a.arrays[0]) else Truth()
        measured += _measure(index, x, y, a.dtypes[index], known, settings)
    return Comparison(names, None, tuple(measured))


def _fits(truth: Truth, rows: Array, output: Array) -> bool:
    """Whether values are those of this output: two targets may give another shape than the rest."""
    return truth.given is None or truth.given.shape in (rows.shape, output.shape)


def mismatch_of(a: Outputs, b: Outputs) -> str | None:
    """How two targets differ in number, shape or dtype of their outputs; None if they do not."""
    if len(a.arrays) != len(b.arrays):
        return f"{len(a.arrays)} outputs against {len(b.arrays)}"
    for index, (x, y) in enumerate(zip(a.arrays, b.arrays, strict=True)):
        if x.shape != y.shape:
            return f"output {index} has shape {x.shape} against {y.shape}"
        if a.dtypes[index] != b.dtypes[index]:
            return f"output {index} has dtype {a.dtypes[index]} against {b.dtypes[index]}"
    return None


def only_width_differs(a: Outputs, b: Outputs) -> bool:
    """Whether two targets give the same integers in more or fewer bits, as JAX does by default."""
    pairs = list(zip(a.arrays, b.arrays, strict=False))
    whole = all(x.dtype.kind == y.dtype.kind in "iu" for x, y in pairs)
    same = len(a.arrays) == len(b.arrays) and whole
    return bool(pairs) and same and all(np.array_equal(x, y) for x, y in pairs)


def top_k_accuracies(truth: Truth, output: Array, highest: int = 5) -> dict[str, float] | None:
    if truth.labels is None or output.shape != (*truth.labels.shape, truth.classes):
        return None
    return {str(k): accuracy(truth.labels, output, k) for k in range(1, highest + 1)}


def _measure(
    index: int, x: Array, y: Array, dtype: str, truth: Truth, settings: Settings
) -> Sequence[Measured]:
    needed = max(1.0, settings.p / 100 * len(x))
    found = []
    for metric in all_metrics().values():
        if metric.NAME not in settings.metrics or truth.kind not in metric.NEEDS:
            continue
        read = metric.measure(Rivals(x, y, dtype, truth), settings)
        found.append(
            Measured(
                metric.NAME,
                index,
                read.threshold,
                read.distances,
                read.pattern,
                needed,
                read.elements,
            )
        )
    return found


def distance(a: Outputs, b: Outputs) -> float:
    """Largest relative distance over the outputs; infinite on a mismatch, NaN on one-sided NaN."""
    if mismatch_of(a, b) is not None:
        return float("inf")
    pairs = zip(a.rows, b.rows, strict=True)
    found = [distance_relative(x, y) for x, y in pairs]
    return float(np.max(np.concatenate(found), initial=0.0)) if found else 0.0
