"""`--search gradient`: the same search as AUDEE's at input level, along the gradient of one target.

Beyond the paper. The rows of a population climb the distance of the logits of two targets, each on
its own: what the followed target says of its logits, weighted by the difference to the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from outvote.campaign.probes.evolution import Evolution, Evolved
from outvote.campaign.probes.genome import Genome
from outvote.core.arrays import Array
from outvote.core.cuts import ended_at
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import FindGradients, OpenExplorer
from outvote.run.pool import Pool
from outvote.search.genetic import GeneticSettings, Population

_STEP = 0.5  # of the input's deviation, along the steepest gene


class Climb:
    """Searches inputs of one case on some targets, of which one has gradients."""

    def __init__(self, pool: Pool, names: Sequence[str], settings: GeneticSettings) -> None:
        self._pool = pool
        self._names = list(names)
        self._settings = settings
        self._evolution = Evolution(pool, names, settings)
        found = [name for name in names if pool.targets[name].can("gradients")]
        if not found:
            raise UsageError(
                "--search gradient needs a target that has gradients to follow; "
                f"received {', '.join(names)}"
            )
        self._followed = min(found, key=lambda name: pool.targets[name].climbing_costs)

    def search(self, genome: Genome, rng: np.random.Generator) -> Evolved | None:
        """The farthest that a row got; None where this model has no gradients to follow."""
        began = time.monotonic()
        rows = Population(genome.first, genome.scale, self._settings, rng).ask()
        inputs = genome.inputs(rows)
        if any(array.dtype.kind != "f" for array in inputs) or not self._open(genome, inputs):
            return None
        best, before = inputs, 0.0
        farthest = np.full(len(rows), -1.0)
        for generation in range(self._settings.generations + 1):
            logits, judged = self._evolution.measure(genome.model, inputs)
            before = float(judged.values[0]) if not generation else before
            better = ~(judged.values <= farthest)
            farthest = np.where(better, judged.values, farthest)
            best = [_chosen(better, new, old) for new, old in zip(inputs, best, strict=True)]
            if judged.failure or generation == self._settings.generations or not logits:
                break
            moved = self._moved(inputs, logits)
            if moved is None:
                break
            inputs = moved
        count = len(rows) * (generation + 1)
        return Evolved(
            genome.model,
            inputs if judged.failure else best,
            float(np.nan_to_num(farthest, nan=np.inf).max()),
            before,
            count,
            2 * (generation + 1),
            judged.failure,
            time.monotonic() - began,
        )

    def _open(self, genome: Genome, inputs: Sequence[Array]) -> bool:
        request = OpenExplorer(
            models=(ended_at(*dialect(genome.model.dialect).logits.logits_apart(genome.model)),),
            sample=tuple(self._pool.blobs.put(array) for array in inputs),
            kind="any",
            skip=(),
            threshold=0.0,
            batch=len(inputs[0]),
            steps=1,
        )
        return self._pool.ask(self._followed, request).ok

    def _moved(self, inputs: Sequence[Array], logits: dict[str, Array]) -> list[Array] | None:
        weights = direction(logits, self._followed)
        request = FindGradients(inputs=tuple(inputs), weights=(weights,))
        run = self._pool.ask(self._followed, request)
        if not run.ok:
            return None
        return [_stepped(x, g) for x, g in zip(inputs, run.reply.gradients, strict=True)]


def direction(logits: dict[str, Array], followed: str) -> Array:
    """Where the followed target's logits must go to leave those of the target farthest from it."""
    own = np.asarray(logits[followed], np.float64)
    axes = tuple(range(1, own.ndim))
    gaps = [own - np.asarray(array) for name, array in logits.items() if name != followed]
    sizes = np.stack([np.nan_to_num(np.abs(gap)).mean(axis=axes) for gap in gaps])
    chosen = np.stack(gaps)[sizes.argmax(axis=0), np.arange(len(own))]
    most = np.nan_to_num(np.abs(chosen)).max(axis=axes, keepdims=True)
    even = np.sign(np.nan_to_num(own))  # where no two differ in a single bit: larger numbers
    weights = np.where(most > 0, chosen / np.where(most > 0, most, 1), even)
    return np.nan_to_num(weights).astype(np.float32)


def _stepped(x: Array, gradient: Array) -> Array:
    gradient = np.nan_to_num(np.asarray(gradient, np.float64))
    axes = tuple(range(1, gradient.ndim))
    most = np.abs(gradient).max(axis=axes, keepdims=True)
    step = _STEP * (float(np.asarray(x, np.float64).std()) or 1.0)
    moved = x + step * gradient / np.where(most > 0, most, 1)
    return np.asarray(np.nan_to_num(moved).astype(x.dtype))


def _chosen(better: Array, new: Array, old: Array) -> Array:
    return np.asarray(np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old))
