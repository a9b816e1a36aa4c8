"""DeepXplore's Algorithm 1, over many seeds at once: climbs to inputs on which models differ.

Nothing here knows a framework: `Models` answers, gives gradients and tells its coverage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from outvote.core.answers import Oracle
from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.constraints import Memory, Move

Inputs = list[Array]  # one array per input of the models


class Models(Protocol):
    """The models under test, as functions of arrays."""

    @property
    def widths(self) -> Sequence[int]: ...  # numbers in the answer of each model
    def answers(self, inputs: Inputs) -> list[Array]: ...
    def gradients(
        self, inputs: Inputs, chosen: Sequence[Array], neurons: Sequence[Array] | None
    ) -> tuple[Inputs, list[Array]]:
        """Gradient of the weighted sum of answers and neurons, and the answers themselves."""

    def uncovered(self) -> list[Array]:
        """For each model, the neurons that no test has activated so far."""

    @property
    def neuron_counts(self) -> Sequence[int]: ...
    def cover(self, inputs: Inputs) -> None: ...


@dataclass(frozen=True)
class ClimbSettings:
    """Names of the paper: λ1 and λ2 of equation 3; the iterations that a seed is given."""

    lambda1: float
    lambda2: float
    iterations: int
    seed: int


@dataclass
class Found:
    """What one batch of seeds gave. Rows of arrays belong to the numbers in `index`."""

    index: Array  # seeds that were led to a difference
    inputs: Inputs
    answers: list[Array]
    before: list[Array]  # each model's answer to the seed
    iterations: Array
    chosen: Array  # the model that was to leave the others
    already: Array  # seeds on which the models differ from the start
    tried: int = 0
    unmoved: int = 0  # seeds that no move has changed
    flat: int = 0  # seeds with a gradient of zero at the start
    first: float | None = None  # seconds until the first difference
    finished: float = field(default_factory=time.perf_counter)


@dataclass
class _Active:
    """Seeds still on their way; one row each in every array."""

    index: Array
    seeds: Inputs
    x: Inputs
    labels: Array
    chosen: Array
    neurons: list[Array]
    before: list[Array]
    memories: list[Memory] = field(default_factory=list)

    def keep(self, rows: Array) -> None:
        self.index, self.labels, self.chosen = (
            a[rows] for a in (self.index, self.labels, self.chosen)
        )
        self.seeds, self.x = [a[rows] for a in self.seeds], [a[rows] for a in self.x]
        self.neurons = [a[rows] for a in self.neurons]
        self.before = [a[rows] for a in self.before]
        self.memories = [{key: a[rows] for key, a in m.items()} for m in self.memories]


@dataclass(frozen=True)
class Search:
    """One search over the models; `moves` and `rules` are one per input of the models."""

    models: Models
    oracle: Oracle
    moves: Sequence[Move]
    rules: Sequence[Rules]
    settings: ClimbSettings

    def run(
        self, seeds: Inputs, index: Array, cycle: int, progress: Callable[[float], None]
    ) -> Found:
        """Lead a batch of seeds to differences; `index` are their numbers among all seeds.

        What was found is covered by whoever decides that it is kept.
        """
        began = time.perf_counter()
        answers = self.models.answers(seeds)
        already = self.oracle.differ(answers)
        self._cover([a[already] for a in seeds])
        active = self._start(seeds, answers, index, ~already, cycle)
        steps, done = self._climb(active, progress)
        found = _joined(steps, seeds, self.models.widths)
        found.first = next((s.finished - began for s in steps if len(s.index)), None)
        found.already, found.tried = index[already], len(index)
        found.flat, found.unmoved = done
        return found

    def _cover(self, tests: Inputs) -> None:
        if len(tests[0]):
            self.models.cover(tests)

    def _start(
        self, seeds: Inputs, answers: list[Array], index: Array, rows: Array, cycle: int
    ) -> _Active:
        """The model that shall leave the others and a neuron of each are drawn for every seed.

        A neuron is kept for all iterations of its seed, as in the paper's own experiments: drawn
        anew each time, its gradient would be noise on that of the answers.
        """
        count = len(self.models.widths)
        draws = (
            np.stack(
                [
                    np.random.default_rng((self.settings.seed, cycle, int(i))).random(count + 1)
                    for i in index[rows]
                ]
            )
            if rows.any()
            else np.zeros((0, count + 1))
        )
        neurons = []
        for k, (uncovered, total) in enumerate(
            zip(self.models.uncovered(), self.models.neuron_counts, strict=True)
        ):
            pool = uncovered if len(uncovered) else np.arange(total)
            neurons.append(pool[(draws[:, k + 1] * len(pool)).astype(int)])
        return _Active(
            index[rows],
            [a[rows] for a in seeds],
            [a[rows] for a in seeds],
            self.oracle.labels(answers[0])[rows],
            (draws[:, 0] * count).astype(int),
            neurons,
            [a[rows] for a in answers],
            [{} for _ in seeds],
        )

    def _climb(
        self, active: _Active, progress: Callable[[float], None]
    ) -> tuple[list[Found], tuple[int, int]]:
        steps: list[Found] = []
        flat = unmoved = 0
        for iteration in range(self.settings.iterations):
            if not len(active.index):
                break
            gradients, answers = self._gradients(active)
            if iteration:
                steps.append(self._take_finished(active, gradients, answers, iteration))
            else:
                flat = int(np.all([_is_zero(g) for g in gradients], axis=0).sum())
            unmoved += self._move(active, gradients)
            progress((iteration + 1) / self.settings.iterations)
        if len(active.index):
            answers = self.models.answers(active.x)
            steps.append(self._take_finished(active, [], answers, self.settings.iterations))
        progress(1.0)
        return steps, (flat, unmoved + _count_equal(active.x, active.seeds))

    def _move(self, active: _Active, gradients: Inputs) -> int:
        """Move every input; those that can move no more leave. How many of them never moved."""
        if not len(active.index):
            return 0
        before, memories = active.x, [dict(memory) for memory in active.memories]
        inputs = zip(before, gradients, active.seeds, active.memories, strict=True)
        active.x = [
            move(x, gradient, seed, memory, rules)
            for move, rules, (x, gradient, seed, memory) in zip(
                self.moves, self.rules, inputs, strict=True
            )
        ]
        alive = ~_equal(active.x, before)
        for old, new in zip(memories, active.memories, strict=True):
            if old.keys() != new.keys():  # its first move
                alive[:] = True
            elif old:
                alive |= ~_equal(list(old.values()), list(new.values()))
        stuck = [a[~alive] for a in active.x], [a[~alive] for a in active.seeds]
        if not alive.all():
            active.keep(alive)
        return _count_equal(*stuck)

    def _gradients(self, active: _Active) -> tuple[Inputs, list[Array]]:
        """Of equation 3: Σ F_k(x)[c] over k ≠ j, minus λ1·F_j(x)[c], plus λ2·Σ f_n(x)."""
        chosen = [
            self.oracle.coefficients(active.labels, width)
            * np.where(active.chosen == k, -self.settings.lambda1, 1)[:, None].astype(np.float32)
            for k, width in enumerate(self.models.widths)
        ]
        return self.models.gradients(active.x, chosen, self._wanted_neurons(active))

    def _wanted_neurons(self, active: _Active) -> list[Array] | None:
        if not self.settings.lambda2:
            return None
        rows = np.arange(len(active.index))
        wanted = []
        for picked, total in zip(active.neurons, self.models.neuron_counts, strict=True):
            weights = np.zeros((len(rows), total), np.float32)
            if total:
                weights[rows, picked] = self.settings.lambda2
            wanted.append(weights)
        return wanted

    def _take_finished(
        self, active: _Active, gradients: Inputs, answers: list[Array], iteration: int
    ) -> Found:
        """Take the seeds on which the models clearly differ now out of the batch."""
        split = self.oracle.clearly_differ(answers)
        found = Found(
            active.index[split],
            [a[split] for a in active.x],
            [a[split] for a in answers],
            [a[split] for a in active.before],
            np.full(int(split.sum()), iteration),
            active.chosen[split],
            np.zeros(0, int),
        )
        active.keep(~split)
        gradients[:] = [g[~split] for g in gradients]
        return found


def _is_zero(array: Array) -> Array:
    """For each input whether all its numbers are zero (or not numbers)."""
    flat = array.reshape(len(array), -1)
    return np.asarray(~(np.isfinite(flat) & (flat != 0)).any(axis=1))


def _equal(a: Sequence[Array], b: Sequence[Array]) -> Array:
    """For each input whether its rows are the same in both lists."""
    same = [(x == y).all(axis=tuple(range(1, x.ndim))) for x, y in zip(a, b, strict=True)]
    return np.asarray(np.all(same, axis=0))


def _count_equal(a: Sequence[Array], b: Sequence[Array]) -> int:
    return int(np.sum(_equal(a, b)))


def _joined(steps: Sequence[Found], seeds: Inputs, widths: Sequence[int]) -> Found:
    """The finds of all iterations, in the order of the seeds."""
    none = np.zeros(0, int)
    empty = Found(
        none,
        [a[:0] for a in seeds],
        [np.zeros((0, w), np.float32) for w in widths],
        [np.zeros((0, w), np.float32) for w in widths],
        none,
        none,
        none,
    )
    parts = [empty, *steps]
    order = np.argsort(np.concatenate([p.index for p in parts]), kind="stable")

    def join(pick: Callable[[Found], Array]) -> Array:
        return np.concatenate([pick(p) for p in parts])[order]

    def each(pick: Callable[[Found], list[Array]]) -> list[Array]:
        return [np.concatenate(column)[order] for column in zip(*map(pick, parts), strict=True)]

    return Found(
        join(lambda p: p.index),
        each(lambda p: p.inputs),
        each(lambda p: p.answers),
        each(lambda p: p.before),
        join(lambda p: p.iterations),
        join(lambda p: p.chosen),
        none,
    )
