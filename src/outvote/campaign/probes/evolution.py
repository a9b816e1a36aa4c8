"""Runs AUDEE's genetic search (Algorithm 1) on targets: a batch per generation where it can.

Where only inputs evolve, a population is one batch of one model. Where weights do, every chromosome
is a model of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from outvote.campaign.probes.genome import Genome
from outvote.core.arrays import Array
from outvote.core.cuts import ended_at
from outvote.core.dialect import dialect
from outvote.core.model import Model
from outvote.core.protocol import Ran, RangesWatched, Request, RunModel, WatchRanges
from outvote.core.target import Outcome, Run
from outvote.run.pool import Pool
from outvote.run.settle import ask_all_settled, ask_each_settled
from outvote.search.genetic import GeneticSettings, Population, inconsistency_fitness, nan_fitness

Clock = Callable[[], bool]


@dataclass(frozen=True)
class Evolved:
    """The best that was found: a model and its inputs, one row each that was in the population."""

    model: Model
    inputs: list[Array]
    fitness: float
    before: float  # fitness of the case that the search began with
    evaluations: int
    requests: int  # to each target: a batch is one
    failure: str  # labels, nan, crash, or empty: nothing happened
    seconds: float


@dataclass(frozen=True)
class Fitness:
    """The fitness of every chromosome, and what failed, if anything did."""

    values: Array
    failure: str = ""
    row: int = 0  # which chromosome failed


class Evolution:
    """Searches one case on some targets; on one alone it hunts NaN."""

    def __init__(self, pool: Pool, names: Sequence[str], settings: GeneticSettings) -> None:
        self._pool = pool
        self._names = list(names)
        self._settings = settings

    def search(
        self, genome: Genome, rng: np.random.Generator, spent: Clock = lambda: False
    ) -> Evolved:
        """Until something fails, the generations are over, or the time is spent."""
        began = time.monotonic()
        population = Population(genome.first, genome.scale, self._settings, rng)
        evaluations, before = 0, 0.0
        while True:
            rows = population.ask()
            judged = self._judge(genome, rows)
            evaluations += len(rows)
            if not population.generation:
                before = float(judged.values[0])
            if judged.failure or population.finished or spent():
                break
            population.tell(judged.values)
        best = judged.row if judged.failure else int(judged.values.argmax())
        return Evolved(
            genome.model_of(rows[best]),
            genome.inputs(rows if genome.shares_weights else rows[best : best + 1]),
            float(judged.values[best]),
            before,
            evaluations,
            population.generation + 1 if genome.shares_weights else evaluations,
            judged.failure,
            time.monotonic() - began,
        )

    def _judge(self, genome: Genome, rows: Array) -> Fitness:
        inputs = genome.inputs(rows)
        if genome.shares_weights:
            return self.measure(genome.model, inputs)[1]
        cases = [
            (genome.model_of(row), [array[i : i + 1] for array in inputs])
            for i, row in enumerate(rows)
        ]
        requests = [self._request(model, feeds) for model, feeds in cases]
        fitness = np.zeros(len(rows))
        for i, runs in enumerate(ask_each_settled(self._pool, self._names, requests)):
            one = self._of_runs(runs, 1)
            fitness[i] = one.values[0]
            if one.failure:
                return Fitness(fitness, one.failure, i)
        return Fitness(fitness)

    def measure(self, model: Model, inputs: Sequence[Array]) -> tuple[dict[str, Array], Fitness]:
        """The logits of every target that gave any, and what they say of each row."""
        runs = ask_all_settled(self._pool, self._names, self._request(model, inputs))
        logits = {name: logits_of(run) for name, run in runs.items() if run.ok}
        return logits, self._of_runs(runs, len(inputs[0]))

    def _of_runs(self, runs: Mapping[str, Run], count: int) -> Fitness:
        if any(run.outcome.is_death for run in runs.values()):
            return Fitness(np.zeros(count), "crash")
        ran = [run for run in runs.values() if run.ok]
        raised = any(run.outcome is Outcome.ERROR for run in runs.values())
        if raised and ran:
            return Fitness(np.zeros(count), "crash")
        if len(ran) < min(2, len(self._names)):  # gaps, or a model that none can run
            return Fitness(np.zeros(count))
        logits = [np.asarray(logits_of(run)) for run in ran]
        if len(self._names) == 1:
            bad = ran[0].reply.bad
            worst = int(bad.argmax())
            return Fitness(nan_fitness(logits[0]), "nan" if bad.any() else "", worst)
        if len({array.shape for array in logits}) > 1:
            return Fitness(np.zeros(count), "crash")
        return _judge_pair(logits)

    def _request(self, model: Model, inputs: Sequence[Array]) -> Request[Ran | RangesWatched]:
        blobs = tuple(self._pool.blobs.put(np.ascontiguousarray(array)) for array in inputs)
        if len(self._names) == 1:
            return ranges_request(model, blobs)
        cut = ended_at(*dialect(model.dialect).logits.logits_apart(model))
        return RunModel(model=cut, inputs=blobs, batch=len(inputs[0]), steps=len(cut.layers))


def ranges_request(model: Model, blobs: Sequence[str]) -> WatchRanges:
    """Asks for the logits, and for the range of what every layer gives."""
    apart, ref = dialect(model.dialect).logits.logits_apart(model)
    return WatchRanges(model=apart, inputs=tuple(blobs), wanted=ref, steps=len(apart.layers))


def logits_of(run: Run[Ran | RangesWatched]) -> Array:
    """The logits, whichever way they were asked for."""
    reply = run.reply
    return reply.wanted if isinstance(reply, RangesWatched) else reply.outputs.arrays[0]


def _judge_pair(logits: Sequence[Array]) -> Fitness:
    """Labels that differ are an inconsistency (Definition 2); so is NaN on some targets only."""
    flat = [array.reshape(len(array), -1) for array in logits]
    fitness = inconsistency_fitness(flat)
    bad = np.stack([np.isnan(array).any(axis=1) for array in flat])
    one_sided = bad.any(axis=0) & ~bad.all(axis=0)
    if one_sided.any():
        return Fitness(fitness, "nan", int(one_sided.argmax()))
    if flat[0].shape[1] > 1:
        labels = np.stack([np.nan_to_num(a, nan=-np.inf).argmax(axis=1) for a in flat])
        apart = (labels != labels[0]).any(axis=0) & ~bad.any(axis=0)
        if apart.any():
            return Fitness(fitness, "labels", int(apart.argmax()))
    return Fitness(fitness)
