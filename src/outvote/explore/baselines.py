"""What DeepXplore is held against: inputs picked at random, and adversarial ones (FGSM)."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.explore_protocol import AskModels, FindGradients, MeasureCoverage
from outvote.explore.expedition import Expedition
from outvote.explore.job import Coverage
from outvote.explore.legal import legal_range

EPSILON = 0.1  # of the legal range: the step of FGSM


def random_inputs(trip: Expedition, count: int) -> list[Array]:
    """So many of the seeds, each at most once while they last."""
    rng = np.random.default_rng((trip.job.seed, 1))
    total = trip.data.count
    order = np.concatenate([rng.permutation(total) for _ in range(-(-count // total))])[:count]
    return list(trip.data.take(order.tolist()))


def adversarial_inputs(trip: Expedition, count: int) -> list[Array]:
    """Goodfellow et al. 2015: one step along the sign of the gradient, against a random model."""
    explored = trip.explored
    inputs = random_inputs(trip, count)
    rng = np.random.default_rng((trip.job.seed, 2))
    attacked = rng.integers(0, len(explored.subjects), count)
    answers = trip.ask(AskModels(inputs=tuple(inputs))).reply.answers
    weights = []
    for number, answer in enumerate(answers):
        against = np.zeros(answer.shape, np.float32)
        rows = np.flatnonzero(attacked == number)
        if explored.kind == "classes":
            against[rows, explored.oracle.labels(answer[rows])] = -1
        else:
            against[rows] = rng.choice([-1.0, 1.0], (len(rows), 1))
        weights.append(against)
    request = FindGradients(inputs=tuple(inputs), weights=tuple(weights))
    gradients = trip.ask(request).reply.gradients
    moved = []
    for array, gradient, all_seeds in zip(inputs, gradients, trip.data.inputs, strict=True):
        low, high = legal_range(all_seeds, trip.job.limits_of_range)
        step = EPSILON * (high - low) * np.sign(gradient)
        moved.append(np.clip(array + step, low, high).astype(array.dtype))
    return moved


def measure(trip: Expedition, inputs: list[Array]) -> tuple[Coverage, int]:
    """Coverage of these inputs, and on how many of them the models differ."""
    models = trip.ask(MeasureCoverage(inputs=tuple(inputs))).reply.models
    answers = trip.ask(AskModels(inputs=tuple(inputs))).reply.answers
    best, first = [rows.best for rows in models], [rows.first for rows in models]
    coverage = Coverage(best, first, len(inputs[0]))
    return coverage, int(trip.explored.oracle.differ(answers).sum())
