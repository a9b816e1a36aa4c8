"""AUDEE's genetic search (Algorithm 1) over vectors of numbers: asked and told, it runs nothing.

The paper gives the operators but not their numbers; the defaults of `GeneticSettings` are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outvote.core.arrays import Array

LEVELS = {"IN": ("input",), "WT": ("weight",), "IN-WT": ("input", "weight")}


@dataclass(frozen=True)
class GeneticSettings:
    """n, m, r1, r2 and maxIte of Algorithm 1, and how strong the noise is."""

    population: int = 10  # n
    elite: int = 3  # m: the best, which stay and are the parents
    crossover: float = 0.5  # r1: the chance that a gene comes from the first parent
    mutation: float = 0.8  # r2: the chance that a child gets noise
    generations: int = 5  # maxIte
    noise: float = 0.1  # scale of the Cauchy noise, in deviations of the genes


class Population:
    """Chromosomes as the rows of one matrix."""

    def __init__(
        self, first: Array, scale: Array, settings: GeneticSettings, rng: np.random.Generator
    ) -> None:
        """`first` is the chromosome to start from; `scale` the deviation of each gene."""
        self._settings = settings
        self._rng = rng
        self._scale = np.asarray(scale, np.float32)
        start = np.repeat(np.asarray(first, np.float32)[None], settings.population, axis=0)
        self._rows = start + self._noise(settings.population)
        self._rows[0] = first  # what we have may be the best
        self.generation = 0

    def ask(self) -> Array:
        """The chromosomes to be judged."""
        return self._rows

    def tell(self, fitness: Array) -> None:
        """Keep the best m, and breed the others from them (lines 6 to 15)."""
        rank = np.argsort(-np.nan_to_num(fitness, nan=np.inf), kind="stable")
        parents = self._rows[rank[: self._settings.elite]]
        missing = self._settings.population - len(parents)
        children = self._crossed(parents, missing)
        noisy = self._rng.random(missing) < self._settings.mutation
        children[noisy] += self._noise(missing)[noisy]
        self._rows = np.concatenate([parents, children])
        self.generation += 1

    @property
    def finished(self) -> bool:
        return self.generation >= self._settings.generations

    def _crossed(self, parents: Array, count: int) -> Array:
        """Gene by gene from one of two parents (line 11)."""
        first, second = self._rng.integers(len(parents), size=(2, count))
        chosen = self._rng.random((count, parents.shape[1])) < self._settings.crossover
        return np.asarray(np.where(chosen, parents[first], parents[second]))

    def _noise(self, count: int) -> Array:
        noise = self._rng.standard_cauchy((count, len(self._scale)))
        most = np.finfo(np.float32).max / 4  # a gene stays a number; what follows from it may not
        scaled = np.clip(noise * self._scale * self._settings.noise, -most, most)
        return scaled.astype(np.float32)


def inconsistency_fitness(logits: Sequence[Array]) -> Array:
    """Mean absolute difference of the logits of the two farthest targets (Definition 4)."""
    rows = [np.asarray(item, np.float64).reshape(len(item), -1) for item in logits]
    worst = np.zeros(len(rows[0]))
    for place, one in enumerate(rows):
        for other in rows[place + 1 :]:
            with np.errstate(invalid="ignore", over="ignore"):
                gap = np.abs(one - other)
            gap[np.isnan(one) & np.isnan(other) | (one == other)] = 0.0
            with np.errstate(over="ignore"):
                worst = np.maximum(worst, gap.mean(axis=1))
    return worst


def nan_fitness(logits: Array) -> Array:
    """How far the logits of one target spread (section 2.4.4): from there they overflow.

    One logit z says what two say that are z and 0 (a sigmoid is a softmax over them), so it spreads
    from zero. What is infinite spreads infinitely.
    """
    rows = np.asarray(logits, np.float64).reshape(len(logits), -1)
    if rows.shape[1] == 1:
        rows = np.concatenate([rows, np.zeros_like(rows)], axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        spread = rows.max(axis=1) - rows.min(axis=1)
    return np.asarray(np.where(np.isfinite(rows).all(axis=1), spread, np.inf))
