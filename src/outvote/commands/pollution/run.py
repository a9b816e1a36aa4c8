"""`outvote pollution`: which training samples were mislabelled on purpose (DeepXplore, 7.3).

The confidence that a polluted model has moved from one class to another tells what was done. From
seeds of the true class a gradient search finds inputs that the clean model still takes for it and
the polluted one for the false class. Training samples that have the false label, but look more like
these inputs than like others of the false class, are the polluted ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from outvote.commands.pollution.job import Evidence
from outvote.commands.pollution.result import pollution_result
from outvote.commands.record import recording
from outvote.commands.view import UNSEEN, View
from outvote.core.arrays import Array
from outvote.core.case import load_data
from outvote.core.dialect import inspect
from outvote.core.errors import UsageError
from outvote.core.explore_protocol import AskModels, MoveInputs
from outvote.explore.expedition import ask
from outvote.explore.explore import open_in, require_two
from outvote.explore.job import Explored, ExploreJob
from outvote.explore.legal import legal_range
from outvote.explore.similarity import ssim
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.watch import Watch, silent

_EVIDENCE = 400  # inputs that are compared with the training data
_CHUNK = 4096
_NEAREST = 5
_SIGN = 0.03  # confidence that moved, on average; models trained twice alike stay far below


def run(job: ExploreJob, view: View = UNSEEN) -> dict[str, Any]:
    """Do the job with a worker of its own and, where it names a folder, write the reports."""
    require_two(job)
    for path in job.models:
        inspect(path, None)
    with recording("pollution", job.out, view.watch) as record:
        with LocalPool(
            [job.target], limits=job.limits, custom=job.custom, allow_code=job.allow_code
        ) as pool:
            result = pollution_in(pool, job, record)
        return record.publish(result)


def pollution_in(pool: Pool, job: ExploreJob, watch: Watch = silent) -> dict[str, Any]:
    """Do the job in a pool that has its target; the dict that result.json holds."""
    began = time.monotonic()
    arrays = load_data(job.data) if isinstance(job.data, Path) else dict(job.data)
    labels = _labels(arrays, job)
    source = str(job.data) if isinstance(job.data, Path) else "arrays"
    job = replace(job, data=_seeds(arrays, len(labels), job), count=None)
    explored = open_in(pool, job, watch).explored
    evidence: Evidence | None = None
    suspects: Array = np.zeros(0, int)
    scores: Array = np.zeros(0)
    try:
        with watch("Searching for inputs that split the models", pool, [job.target.name]):
            evidence = _evidence(pool, job, explored)
        if evidence is not None and len(evidence.inputs):
            with watch("Comparing with the training data", pool, [job.target.name]):
                suspects, scores = find_suspects(arrays["x"], labels, evidence)
    except KeyboardInterrupt:
        explored.interrupted = True
    explored.seconds = time.monotonic() - began
    data = {"source": source, "instances": len(labels)}
    return pollution_result(job, explored, evidence, suspects, scores, arrays["x"], data)


def _labels(arrays: Mapping[str, Array], job: ExploreJob) -> Array:
    labels, x = arrays.get("y"), arrays.get("x")
    if x is None or x.ndim < 3:
        shape = "missing" if x is None else f"of shape {x.shape}"
        raise UsageError(
            f"pollution is found by the likeness of pictures, but x of {job.data} is {shape}; "
            "give pictures"
        )
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise UsageError(f"{job.data} needs y: the label that each training sample has")
    if len(labels) != len(x):
        raise UsageError(f"{job.data} holds {len(x)} inputs but {len(labels)} labels")
    return labels


def _seeds(arrays: Mapping[str, Array], total: int, job: ExploreJob) -> dict[str, Array]:
    """A random part of the training data."""
    count = min(job.count or total, total)
    rows = np.random.default_rng(job.seed).choice(total, count, replace=False)
    return {"x": arrays["x"][rows]}


def _evidence(pool: Pool, job: ExploreJob, explored: Explored) -> Evidence | None:
    """What the pollution did, and inputs that show it; None where no confidence has moved."""
    assert explored.data is not None
    seeds = explored.data.inputs[0]
    clean, polluted = ask(pool, job.target, AskModels(inputs=(seeds,))).reply.answers
    explored.tried = len(seeds)
    true, false, moved = moved_confidence(clean, polluted)
    if not moved > _SIGN:
        return None
    rows = np.flatnonzero(clean.argmax(axis=1) == true)[:_EVIDENCE]
    found = _climb(pool, job, seeds[rows], true, false, clean.shape[1])
    genuine = seeds[clean.argmax(axis=1) == false][:_EVIDENCE]
    return Evidence(true, false, found, genuine, moved)


def moved_confidence(clean: Array, polluted: Array) -> tuple[int, int, float]:
    """From which class to which the polluted model has moved most confidence, and how much."""
    taken = clean.argmax(axis=1)
    best = (0, 1, 0.0)
    for true in np.unique(taken):
        gain = (polluted - clean)[taken == true].mean(axis=0)
        gain[true] = -np.inf
        if gain.max() > best[2]:
            best = (int(true), int(gain.argmax()), float(gain.max()))
    return best


def _climb(pool: Pool, job: ExploreJob, seeds: Array, true: int, false: int, classes: int) -> Array:
    """Lead seeds to where the clean model says `true` and the polluted one `false`."""
    weights = np.zeros((2, len(seeds), classes), np.float32)
    weights[0, :, true], weights[1, :, true], weights[1, :, false] = 1, -1, 1
    now, shown = seeds, np.zeros(len(seeds), bool)
    evidence = seeds.copy()
    for iteration in range(job.iterations + 1):
        answers = ask(pool, job.target, AskModels(inputs=(now,))).reply.answers
        clean, polluted = (answer.argmax(axis=1) for answer in answers)
        new = (clean == true) & (polluted == false) & ~shown
        evidence[new], shown = now[new], shown | new
        if shown.all() or iteration == job.iterations:
            break
        request = MoveInputs(inputs=(now,), weights=tuple(weights), fresh=iteration == 0)
        (now,) = ask(pool, job.target, request).reply.inputs
    return evidence[shown]


def find_suspects(x: Array, labels: Array, evidence: Evidence) -> tuple[Array, Array]:
    """Training samples with the false label that look like the evidence, likest first.

    A score is how much more a sample looks like the evidence than like genuine ones. The evidence
    was changed by the search, which costs it some likeness, so that the border is not at zero: it
    lies where it parts the scores best.
    """
    candidates = np.flatnonzero(labels == evidence.false)
    if not len(candidates):
        return candidates, np.zeros(0)
    low, high = legal_range(x, None)
    span = float(np.max(high - low))
    scores = np.concatenate(
        [
            _likeness(evidence.inputs, x[rows], span) - _likeness(evidence.genuine, x[rows], span)
            for rows in np.array_split(candidates, -(-len(candidates) // _CHUNK))
        ]
    )
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > _between_two_groups(scores)]
    return candidates[order], scores[order]


def _between_two_groups(scores: Array) -> float:
    """The border that parts the scores best into two groups (Otsu 1979)."""
    ordered = np.sort(scores)
    below = np.arange(1, len(ordered))
    if not len(below):
        return float(ordered[0]) - 1
    sums = ordered.cumsum()
    left = sums[:-1] / below
    right = (sums[-1] - sums[:-1]) / (len(ordered) - below)
    best = int(np.argmax(below * (len(ordered) - below) * (right - left) ** 2))
    return float((ordered[best] + ordered[best + 1]) / 2)


def _likeness(pictures: Array, samples: Array, span: float) -> Array:
    """A sample's mean similarity to the few pictures that are nearest to it."""
    if not len(pictures):
        return np.zeros(len(samples))
    similarity = ssim(pictures, samples, span)
    few = min(_NEAREST, len(similarity))
    return np.asarray(np.partition(similarity, -few, axis=0)[-few:].mean(axis=0))
