"""Retrains each model with what was found, and beside it with random and adversarial inputs.

DeepXplore, 7.3: found inputs are labelled by majority vote, so that nobody has to look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from outvote.checking import Watch, silent
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.data import Data, fit, load_data
from outvote.explore.asking import ask
from outvote.explore.baselines import adversarial_inputs, random_inputs
from outvote.explore.job import Explored, ExploreJob, Retraining, Subject
from outvote.explore.votes import labels_of, majority
from outvote.run.pool import Pool, Request


@dataclass(frozen=True)
class _Sets:
    """Training and test data as blobs."""

    inputs: list[str]
    labels: str
    test_inputs: list[str]
    test_labels: str
    count: int
    test_count: int


def retrain(
    pool: Pool, job: ExploreJob, explored: Explored, wish: Retraining, watch: Watch = silent
) -> None:
    """Fill in `explored.retraining`; without a majority for any input there is nothing to add."""
    if explored.kind != "classes":
        raise UsageError("--retrain needs models that give classes; these give values")
    sets = _sets(pool, explored, wish)
    added = _additions(pool, job, explored)
    count = len(added["explore"][1]) if added else 0
    if not count:
        explored.warnings.append(
            "nothing was retrained: no majority of the models agrees on any input that was found"
        )
        return
    runs = []
    for subject in explored.subjects:
        for name, (inputs, labels) in added.items():
            with watch(f"Retraining {subject.name} with {name} inputs", pool, [job.target.name]):
                scores = _train(pool, job, wish, subject, sets, inputs, labels)
            runs.append(
                {"model": subject.name, "added": name, "before": scores[0], "accuracy": scores[1:]}
            )
    explored.retraining = {
        "added": count,
        "train": sets.count,
        "test": sets.test_count,
        "epochs": wish.epochs,
        "learning_rate": wish.learning_rate,
        "runs": runs,
    }


def _sets(pool: Pool, explored: Explored, wish: Retraining) -> _Sets:
    train, test = (
        _labelled(d, explored, n) for d, n in ((wish.train, "--retrain"), (wish.test, "--test"))
    )
    assert train.truth is not None
    assert test.truth is not None
    return _Sets(
        [pool.blobs.put(array) for array in train.inputs],
        pool.blobs.put(train.truth.astype(np.int64)),
        [pool.blobs.put(array) for array in test.inputs],
        pool.blobs.put(test.truth.astype(np.int64)),
        train.count,
        test.count,
    )


def _labelled(data: Path | Mapping[str, Array], explored: Explored, option: str) -> Data:
    arrays = load_data(data) if isinstance(data, Path) else dict(data)
    source = str(data) if isinstance(data, Path) else "arrays"
    fitted = fit(arrays, explored.subjects[0].model, source, allow_nan=False)
    truth = fitted.truth
    if truth is None or truth.ndim != 1 or truth.dtype.kind not in "iu":
        raise UsageError(f"{source}, given with {option}, needs y: one label for each input")
    return fitted


def _additions(
    pool: Pool, job: ExploreJob, explored: Explored
) -> dict[str, tuple[list[Array], Array]]:
    """As many inputs of each kind, labelled by majority vote (the baselines: on their seeds)."""
    if explored.found is None:
        return {}
    votes = majority(labels_of(explored.found, explored))
    rows = np.flatnonzero(votes >= 0)
    found = [array[rows] for array in explored.found.inputs]
    plain = random_inputs(explored, len(rows))
    labels = _vote(pool, job, explored, plain) if len(rows) else votes[:0]
    attacked = adversarial_inputs(pool, job, explored, len(rows)) if len(rows) else plain
    sure = np.flatnonzero(labels >= 0)
    return {
        "explore": (found, votes[rows]),
        "random": ([array[sure] for array in plain], labels[sure]),
        "fgsm": ([array[sure] for array in attacked], labels[sure]),
    }


def _vote(pool: Pool, job: ExploreJob, explored: Explored, inputs: list[Array]) -> Array:
    answers = ask(pool, job.target, "ask", arrays=inputs).arrays
    return majority(np.stack([explored.oracle.labels(answer) for answer in answers]))


def _train(
    pool: Pool,
    job: ExploreJob,
    wish: Retraining,
    subject: Subject,
    sets: _Sets,
    inputs: list[Array],
    labels: Array,
) -> list[float]:
    arguments = {
        "model": subject.model.to_json(),
        "inputs": [sets.inputs, [pool.blobs.put(array) for array in inputs]],
        "labels": [sets.labels, pool.blobs.put(labels.astype(np.int64))],
        "test_inputs": sets.test_inputs,
        "test_labels": sets.test_labels,
        "epochs": wish.epochs,
        "batch": job.batch_size,
        "learning_rate": wish.learning_rate,
        "seed": job.seed,
    }
    steps = wish.epochs * -(-(sets.count + len(labels)) // job.batch_size)
    run = pool.ask(job.target.name, Request("train", arguments, steps=steps))
    if not run.ok:
        raise UsageError(f"retraining {subject.path.name} failed in {run.target}: {run.message}")
    scores: list[float] = run.reply["accuracy"]
    return scores
