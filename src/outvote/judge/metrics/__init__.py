"""The metrics of a comparison, found by their folder: each file is one.

A file has `NAME`, that users give; `NEEDS`, the kinds of ground truth (`Truth.kind`) that it can be
held against; and `measure`, which reads one output of two targets. It is called for no other truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from outvote.core.arrays import Array
from outvote.core.plugins import modules_in
from outvote.core.truth import Truth
from outvote.judge.patterns import Pattern

if TYPE_CHECKING:
    from outvote.judge.compare import Settings


@dataclass(frozen=True)
class Rivals:
    """One output of two targets, instance by instance, and what it should be."""

    x: Array
    y: Array
    dtype: str
    truth: Truth


@dataclass(frozen=True)
class Reading:
    """A distance per instance, the least that counts, and how the distances spread.

    `elements`, where there are any, are looked at as well: see `Measured.reached`.
    """

    distances: Array
    threshold: float
    pattern: Pattern
    elements: Array = field(default_factory=lambda: np.zeros(0))


class Metric(Protocol):
    """What a file in `metrics` offers."""

    NAME: str
    NEEDS: frozenset[str]

    def measure(self, rivals: Rivals, settings: Settings) -> Reading: ...


@cache
def all_metrics() -> dict[str, Metric]:
    """Every metric by its name, in the order of the files: the first that shows it best counts."""
    return {module.NAME: module for module in modules_in(__name__)}
