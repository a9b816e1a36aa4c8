"""What DeepXplore is held against: inputs picked at random, and adversarial ones (FGSM)."""

from __future__ import annotations

import numpy as np

from outvote.core.arrays import Array
from outvote.core.protocol import AskModels, FindGradients, MeasureCoverage
from outvote.explore.asking import ask
from outvote.explore.job import Coverage, Explored, ExploreJob
from outvote.explore.legal import legal_range
from outvote.run.pool import Pool

EPSILON = 0.1  # of the legal range: the step of FGSM


def random_inputs(explored: Explored, count: int) -> list[Array]:
    """So many of the seeds, each at most once while they last."""
    assert explored.data is not None
    rng = np.random.default_rng((explored.job.seed, 1))
    total = explored.data.count
    order = np.concatenate([rng.permutation(total) for _ in range(-(-count // total))])[:count]
    return list(explored.data.take(order.tolist()))


def adversarial_inputs(pool: Pool, job: ExploreJob, explored: Explored, count: int) -> list[Array]:
    """Goodfellow et al. 2015: one step along the sign of the gradient, against a random model."""
    assert explored.data is not None
    inputs = random_inputs(explored, count)
    rng = np.random.default_rng((job.seed, 2))
    attacked = rng.integers(0, len(explored.subjects), count)
    answers = ask(pool, job.target, AskModels(inputs=tuple(inputs))).reply.answers
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
    gradients = ask(pool, job.target, request).reply.gradients
    moved = []
    for array, gradient, all_seeds in zip(inputs, gradients, explored.data.inputs, strict=True):
        low, high = legal_range(all_seeds, job.limits_of_range)
        step = EPSILON * (high - low) * np.sign(gradient)
        moved.append(np.clip(array + step, low, high).astype(array.dtype))
    return moved


def measure(
    pool: Pool, job: ExploreJob, explored: Explored, inputs: list[Array]
) -> tuple[Coverage, int]:
    """Coverage of these inputs, and on how many of them the models differ."""
    models = ask(pool, job.target, MeasureCoverage(inputs=tuple(inputs))).reply.models
    answers = ask(pool, job.target, AskModels(inputs=tuple(inputs))).reply.answers
    best, first = [rows.best for rows in models], [rows.first for rows in models]
    coverage = Coverage(best, first, len(inputs[0]))
    return coverage, int(explored.oracle.differ(answers).sum())
