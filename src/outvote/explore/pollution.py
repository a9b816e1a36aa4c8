"""`outvote pollution`: which training samples were mislabelled on purpose (DeepXplore, 7.3).

A clean and a polluted model differ where the pollution is. Inputs that split them tell which class
was turned into which; the training samples with the false label that look most like these inputs
are the polluted ones.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from outvote.checking import Watch, silent
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.version import VERSION
from outvote.data import load_data
from outvote.explore.exploring import explore_in, require_two
from outvote.explore.job import Explored, ExploreJob
from outvote.explore.rules import legal_range
from outvote.explore.similarity import ssim
from outvote.modelfile import inspect
from outvote.result import SCHEMA, number, picture
from outvote.run.pool import Pool

_EXAMPLES = 24
_EVIDENCE = 400  # inputs that are compared with the training data
_CHUNK = 4096


@dataclass(frozen=True)
class Evidence:
    """Inputs that the clean model takes for `true` and the polluted one for `false`."""

    true: int
    false: int
    inputs: Array
    share: float  # of all inputs that split the models


def run_pollution(job: ExploreJob, watch: Watch = silent) -> dict[str, Any]:
    """Do the job with a worker of its own. The job's data are the training data, with labels."""
    require_two(job)
    for path in job.models:
        inspect(path, None)
    with Pool(
        [job.target], limits=job.limits, custom=job.custom, allow_code=job.allow_code
    ) as pool:
        return pollution_in(pool, job, watch)


def pollution_in(pool: Pool, job: ExploreJob, watch: Watch = silent) -> dict[str, Any]:
    """Do the job in a pool that has its target; the dict that result.json holds."""
    began = time.monotonic()
    arrays = load_data(job.data) if isinstance(job.data, Path) else dict(job.data)
    labels = _labels(arrays, job)
    seeds = _seeds(arrays, len(labels), job)
    explored = explore_in(pool, replace(job, data=seeds, count=None, baselines=False), watch)
    evidence = _evidence(explored)
    suspects: Array = np.zeros(0, int)
    scores: Array = np.zeros(0)
    if evidence is not None and not explored.interrupted:
        with watch("Comparing with the training data", pool, [job.target.name]):
            suspects, scores = find_suspects(arrays["x"], labels, evidence)
    return _result(job, explored, evidence, suspects, scores, arrays, time.monotonic() - began)


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


def _evidence(explored: Explored) -> Evidence | None:
    """The most frequent pair of answers (clean, polluted) among the inputs that split them."""
    if explored.found is None:
        return None
    clean, polluted = (explored.oracle.labels(answer) for answer in explored.found.answers)
    pairs = Counter(zip(clean.tolist(), polluted.tolist(), strict=True))
    ((true, false), count) = max(pairs.items(), key=lambda item: (item[1], item[0]))
    rows = np.flatnonzero((clean == true) & (polluted == false))[:_EVIDENCE]
    return Evidence(true, false, explored.found.inputs[0][rows], count / explored.found.count)


def find_suspects(x: Array, labels: Array, evidence: Evidence) -> tuple[Array, Array]:
    """Training samples that have the false label and look like the evidence, likest first."""
    candidates = np.flatnonzero(labels == evidence.false)
    if not len(candidates):
        return candidates, np.zeros(0)
    low, high = legal_range(x, None)
    span = float(np.max(high - low))
    scores = np.concatenate(
        [
            _likeness(ssim(evidence.inputs, x[rows], span))
            for rows in np.array_split(candidates, -(-len(candidates) // _CHUNK))
        ]
    )
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > _between_two_groups(scores)]
    return candidates[order], scores[order]


def _likeness(similarity: Array) -> Array:
    """A sample's mean similarity to the few pieces of evidence that are nearest to it."""
    few = min(5, len(similarity))
    return np.asarray(np.partition(similarity, -few, axis=0)[-few:].mean(axis=0))


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


def _result(
    job: ExploreJob,
    explored: Explored,
    evidence: Evidence | None,
    suspects: Array,
    scores: Array,
    arrays: Mapping[str, Array],
    seconds: float,
) -> dict[str, Any]:
    assert explored.hello is not None
    found = len(suspects) > 0
    verdict = "interrupted" if explored.interrupted else "inconsistent" if found else "consistent"
    low, high = legal_range(arrays["x"], None)
    limits = (float(low.min()), float(high.max()))
    return {
        "schema": SCHEMA,
        "command": "pollution",
        "outvote": VERSION,
        "created": explored.created.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "verdict": verdict,
        "summary": _summary(explored, evidence, suspects, len(arrays["x"])),
        "warnings": list(explored.warnings),
        "findings": [],
        "targets": [
            {"name": job.target.name, "versions": explored.hello.reply.get("versions", {})}
        ],
        "models": [{"name": s.name, "path": str(s.path)} for s in explored.subjects],
        "data": {
            "source": str(job.data) if isinstance(job.data, Path) else "arrays",
            "instances": len(arrays["x"]),
        },
        "settings": {"constraint": job.constraint, "iterations": job.iterations, "seed": job.seed},
        "seeds": explored.tried,
        "differences": {"total": explored.found.count if explored.found else 0},
        "evidence": None
        if evidence is None
        else {
            "true": evidence.true,
            "false": evidence.false,
            "inputs": len(evidence.inputs),
            "share": evidence.share,
            "pictures": [picture(item, limits) for item in evidence.inputs[:_EXAMPLES]],
        },
        "suspects": [int(i) for i in suspects],
        "scores": [number(float(score)) for score in scores],
        "examples": [
            {
                "sample": int(i),
                "score": number(float(s)),
                "picture": picture(arrays["x"][i], limits),
            }
            for i, s in list(zip(suspects, scores, strict=True))[:_EXAMPLES]
        ],
    }


def _summary(explored: Explored, evidence: Evidence | None, suspects: Array, total: int) -> str:
    if explored.interrupted:
        return "Stopped early, before the training data were compared."
    if evidence is None:
        return f"The models never differ from {explored.tried} seeds: no sign of pollution."
    if not len(suspects):
        return f"No training sample is labelled {evidence.false}: nothing to suspect."
    return (
        f"{len(suspects)} of {total} training samples look like {evidence.true} and are labelled "
        f"{evidence.false}."
    )
