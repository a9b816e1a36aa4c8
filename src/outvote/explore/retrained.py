"""Retrains each model with what was found, and beside it with random and adversarial inputs.

DeepXplore, 7.3: found inputs are labelled by majority vote, so that nobody has to look at them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.case import fit, load_data
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import AskModels
from outvote.core.protocol import TrainModel
from outvote.explore.baselines import adversarial_inputs, random_inputs
from outvote.explore.expedition import Expedition
from outvote.explore.job import Explored, ModelUnderTest, Retraining
from outvote.explore.votes import labels_of, majority
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled
from outvote.run.watch import Watch, silent

Labelled = tuple[list[Array], Array]  # inputs, and a label for each
FINDS = "finds"


@dataclass(frozen=True)
class _Sets:
    """Training and test data as blobs; the first of the tests is that of `--test`."""

    train: tuple[tuple[str, ...], str]
    count: int
    tests: dict[str, tuple[tuple[str, ...], str]]
    sizes: dict[str, int]


def retrain(trip: Expedition, wish: Retraining, watch: Watch = silent) -> None:
    """Fill in `explored.retraining`; without a majority for any input there is nothing to add."""
    explored, names = trip.explored, [trip.job.target.name]
    if explored.kind != "classes":
        raise UsageError("--retrain needs models that give classes; these give values")
    found = _voted(explored)
    added = _additions(trip, found, wish.most_added) if found else {}
    sets = _sets(trip.pool, explored, wish, _rest(found, wish.most_added))
    if not added:
        explored.warnings.append(
            "nothing was retrained: no majority of the models agrees on any input that was found"
        )
        return
    runs = []
    for subject in explored.subjects:
        for name, (inputs, labels) in added.items():
            with watch(f"Retraining {subject.name} with {name} inputs", trip.pool, names):
                first, *others = _train(trip, wish, subject, sets, inputs, labels)
            runs.append(
                {
                    "model": subject.name,
                    "added": name,
                    **_told(first),
                    "others": {
                        n: _told(s) for n, s in zip(list(sets.tests)[1:], others, strict=True)
                    },
                }
            )
    explored.retraining = {
        "added": len(added["explore"][1]),
        "train": sets.count,
        "test": sets.sizes.pop("test"),
        "others": sets.sizes,
        "epochs": wish.epochs,
        "learning_rate": wish.learning_rate,
        "runs": runs,
    }


def _told(scores: list[float]) -> dict[str, Any]:
    return {"before": scores[0], "accuracy": scores[1:]}


def _voted(explored: Explored) -> Labelled | None:
    """The finds on which a majority of the models agrees, with what it says."""
    if explored.found is None:
        return None
    votes = majority(labels_of(explored.found, explored))
    rows = np.flatnonzero(votes >= 0)
    return ([array[rows] for array in explored.found.inputs], votes[rows]) if len(rows) else None


def _rest(found: Labelled | None, count: int) -> Labelled | None:
    """Finds that are not trained on: they show whether the models learn the kind, or the few."""
    if found is None or len(found[1]) <= count:
        return None
    return [array[count:] for array in found[0]], found[1][count:]


def _sets(pool: Pool, explored: Explored, wish: Retraining, finds: Labelled | None) -> _Sets:
    train = _labelled(wish.train, explored, "--retrain")
    tests = {"test": _labelled(wish.test, explored, "--test")}
    for name, arrays in wish.more_tests.items():
        tests[name] = _labelled(arrays, explored, name)
    if finds is not None:
        tests[FINDS] = finds

    def stored(labelled: Labelled) -> tuple[tuple[str, ...], str]:
        inputs, labels = labelled
        return tuple(map(pool.blobs.put, inputs)), pool.blobs.put(labels.astype(np.int64))

    return _Sets(
        stored(train),
        len(train[1]),
        {name: stored(test) for name, test in tests.items()},
        {name: len(test[1]) for name, test in tests.items()},
    )


def _labelled(data: Path | Mapping[str, Array], explored: Explored, option: str) -> Labelled:
    arrays = load_data(data) if isinstance(data, Path) else dict(data)
    source = str(data) if isinstance(data, Path) else "arrays"
    fitted = fit(arrays, explored.subjects[0].model, source, allow_nan=False)
    truth = fitted.truth
    if truth is None or truth.ndim != 1 or truth.dtype.kind not in "iu":
        raise UsageError(f"{source}, given with {option}, needs y: one label for each input")
    return list(fitted.inputs), truth


def _additions(trip: Expedition, found: Labelled, most: int) -> dict[str, Labelled]:
    """As many inputs of each kind, labelled by majority vote (the baselines: on their seeds)."""
    inputs, votes = [array[:most] for array in found[0]], found[1][:most]
    plain = random_inputs(trip, len(votes))
    labels = _vote(trip, plain)
    attacked = adversarial_inputs(trip, len(votes))
    sure = np.flatnonzero(labels >= 0)
    return {
        "explore": (inputs, votes),
        "random": ([array[sure] for array in plain], labels[sure]),
        "fgsm": ([array[sure] for array in attacked], labels[sure]),
    }


def _vote(trip: Expedition, inputs: list[Array]) -> Array:
    answers = trip.ask(AskModels(inputs=tuple(inputs))).reply.answers
    return majority(np.stack([trip.explored.oracle.labels(answer) for answer in answers]))


def _train(
    trip: Expedition,
    wish: Retraining,
    subject: ModelUnderTest,
    sets: _Sets,
    inputs: list[Array],
    labels: Array,
) -> list[list[float]]:
    """Accuracy on each test set, before training and after each epoch."""
    pool, job = trip.pool, trip.job
    request = TrainModel(
        model=subject.model,
        inputs=(sets.train[0], tuple(pool.blobs.put(array) for array in inputs)),
        labels=(sets.train[1], pool.blobs.put(labels.astype(np.int64))),
        tests=tuple(sets.tests.values()),
        epochs=wish.epochs,
        batch=job.batch_size,
        learning_rate=wish.learning_rate,
        seed=job.seed,
        steps=wish.epochs * -(-(sets.count + len(labels)) // job.batch_size),
    )
    run = ask_settled(pool, job.target.name, request)
    if not run.ok:
        raise UsageError(f"retraining {subject.path.name} failed in {run.target}: {run.message}")
    return run.reply.accuracy
