"""Turns what `explore` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.files import named_inputs, save_npz
from outvote.core.result import head, moment, number, picture, target_head
from outvote.explore.job import Coverage, Differences, Explored
from outvote.explore.legal import legal_range
from outvote.explore.votes import deviating, labels_of, majority, seed_labels

_EXAMPLES = 24
_CHANGES = 8
_POINTS = 60
THRESHOLDS = tuple(round(0.05 * i, 2) for i in range(20))
INPUTS_FILE = "inputs.npz"


def explore_result(explored: Explored) -> dict[str, Any]:
    """The whole result."""
    job, data, hello = explored.job, explored.data, explored.hello
    if data is None or hello is None:
        raise ValueError("an exploration that has not read its models has no result")
    l1, l2, step = job.hyperparameters
    total = explored.found.count if explored.found else 0
    return {
        **head(
            "explore",
            [target_head(job.target, hello)],
            {"source": data.source, "instances": data.count},
            created=moment(explored.created),
            seconds=explored.seconds,
            verdict=verdict(explored),
            summary=summary(explored),
            interrupted=explored.interrupted,
            warnings=explored.warnings,
        ),
        "models": [
            {
                "name": subject.name,
                "path": str(subject.path),
                "layers": len(subject.model.layers),
                "weights": subject.model.weight_count,
                "neurons": sum(layer["neurons"] for layer in layers),
            }
            for subject, layers in zip(explored.subjects, explored.layers, strict=True)
        ],
        "settings": {
            "constraint": job.constraint,
            "lambda1": l1,
            "lambda2": l2,
            "step": step,
            "threshold": job.threshold,
            "iterations": job.iterations,
            "until_coverage": job.until_coverage,
            "answers": explored.kind,
            "tolerance": job.tolerance,
            "bins": list(job.edges),
            "skip": list(job.skip),
            "batch_size": job.batch_size,
            "seed": job.seed,
        },
        "seeds": explored.tried,
        "already_different": len(explored.already),
        "differences": {
            "total": total,
            "confirmed_on": job.confirm.name if job.confirm else None,
            "unconfirmed": explored.unconfirmed,
            "per_model": _per_model(explored),
            "confusion": _confusion(explored),
            "mean_l1": _mean_l1(explored),
            "mean_iterations": number(float(explored.found.iterations.mean()))
            if total and explored.found
            else None,
            "first_seconds": number(explored.first_seconds),
        },
        "coverage": _coverage(explored),
        "search_seconds": round(explored.search_seconds, 3),
        "seeds_per_second": number(explored.tried / explored.search_seconds)
        if explored.search_seconds
        else None,
        "baselines": dict(explored.split_by),
        "retraining": explored.retraining,
        "examples": _examples(explored),
        "inputs": INPUTS_FILE if total else None,
    }


def verdict(explored: Explored) -> str:
    if explored.interrupted:
        return "interrupted"
    return "inconsistent" if explored.found is not None or explored.already else "consistent"


def summary(explored: Explored) -> str:
    """What was found in one sentence; if nothing was, why."""
    seeds = f"{explored.tried} seed{'s' * (explored.tried != 1)}"
    already = len(explored.already)
    early = "Stopped early: " if explored.interrupted else ""
    if explored.found is not None:
        more = f"; on {already} more they differ from the start" if already else ""
        total = explored.found.count
        return f"{early}{total} of {seeds} led to inputs on which the models differ{more}."
    searched = explored.tried - already
    if not searched:
        return f"{early}The models differ on all {seeds} from the start: none to search from."
    start = f"; on {already} seeds they differ from the start" if already else ""
    return f"{early}Nothing found from {searched} of {seeds}{start}, {_why(explored, searched)}."


def _why(explored: Explored, searched: int) -> str:
    if explored.flat >= searched:
        return (
            "because the gradient is zero on all of them: a layer on the way is not "
            "differentiable, or the models do not depend on the input"
        )
    if explored.unmoved >= searched:
        return "because the constraint allowed no change"
    if explored.unconfirmed:
        told = f"{explored.unconfirmed} input{'s' * (explored.unconfirmed != 1)}"
        return f"because {told} split the models on {explored.job.target.name} only"
    return (
        f"within {explored.job.iterations} iterations: more --iterations, a larger --step or "
        "another --constraint may find some"
    )


def _per_model(explored: Explored) -> dict[str, int]:
    names = [subject.name for subject in explored.subjects]
    if explored.found is None:
        return dict.fromkeys(names, 0)
    counts = deviating(explored.found, explored).sum(axis=1)
    return {name: int(count) for name, count in zip(names, counts, strict=True)}


def _confusion(explored: Explored) -> list[dict[str, Any]]:
    """From the class of the seed to what a deviating model made of it, most frequent first."""
    found = explored.found
    if found is None:
        return []
    labels, before = labels_of(found, explored), seed_labels(found, explored)
    left = deviating(found, explored)
    pairs = Counter(
        (int(before[column]), int(labels[row, column]))
        for row, column in zip(*np.nonzero(left), strict=True)
    )
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [{"from": a, "to": b, "count": n} for (a, b), n in ordered]


def _mean_l1(explored: Explored) -> float | None:
    """Diversity (table 5): distance from the seed, summed over all values, on average."""
    found, data = explored.found, explored.data
    if found is None or data is None:
        return None
    total = np.zeros(found.count)
    for new, seeds in zip(found.inputs, data.inputs, strict=True):
        moved = np.abs(new.astype(np.float64) - seeds[found.seed])
        total += moved.reshape(found.count, -1).sum(axis=1)
    return number(float(total.mean()))


def _coverage(explored: Explored) -> dict[str, Any]:
    threshold = explored.job.threshold
    models = []
    best = explored.best or [np.zeros(0)] * len(explored.subjects)
    for subject, layers, values in zip(explored.subjects, explored.layers, best, strict=True):
        models.append({"model": subject.name, **layer_coverage(layers, values, threshold)})
    return {
        "threshold": threshold,
        "average": explored.coverage,
        "cycles": explored.cycles,
        "models": models,
        "curves": {
            name: {"tests": c.tests, "thresholds": _over_thresholds(c), "growth": _growth(c)}
            for name, c in explored.covered.items()
        },
    }


def layer_coverage(layers: list[dict[str, Any]], best: Array, threshold: float) -> dict[str, Any]:
    """Covered neurons of one model, in total and layer by layer."""
    covered = best > threshold
    rows, start = [], 0
    for layer in layers:
        width = layer["neurons"]
        rows.append({**layer, "covered": int(covered[start : start + width].sum())})
        start += width
    return {
        "neurons": start,
        "covered": int(covered.sum()),
        "coverage": float(covered.mean()) if len(covered) else 0.0,
        "layers": rows,
    }


def _over_thresholds(coverage: Coverage) -> list[list[float]]:
    """Average coverage of all models for each threshold (figure 9)."""
    total = sum(len(best) for best in coverage.best)
    return [[t, sum(int((best > t).sum()) for best in coverage.best) / total] for t in THRESHOLDS]


def _growth(coverage: Coverage) -> list[list[float]]:
    """Average coverage after so many tests, at the threshold of the search."""
    total = sum(len(first) for first in coverage.first)
    firsts = np.sort(np.concatenate(coverage.first))
    counts = np.unique(np.linspace(1, coverage.tests, min(_POINTS, coverage.tests)).astype(int))
    return [[int(n), float(np.searchsorted(firsts, n)) / total] for n in counts]


def _examples(explored: Explored) -> list[dict[str, Any]]:
    """A gallery: finds spread over all seeds, with what each model said before and after."""
    found, data = explored.found, explored.data
    if found is None or data is None:
        return []
    rows = np.unique(np.linspace(0, found.count - 1, min(_EXAMPLES, found.count)).astype(int))
    labels, left = labels_of(found, explored), deviating(found, explored)
    most = majority(labels)
    low, high = legal_range(data.inputs[0], explored.job.limits_of_range)
    limits = (float(low.min()), float(high.max()))
    return [
        {
            "seed": int(found.seed[row]),
            "iterations": int(found.iterations[row]),
            "before": picture(data.inputs[0][found.seed[row]], limits),
            "after": picture(found.inputs[0][row], limits),
            "changes": _changes(explored, found, int(row)),
            "label": int(most[row]) if most[row] >= 0 else None,
            "answers": [
                {
                    "model": subject.name,
                    "before": _said(found.before[k][row], explored),
                    "after": _said(found.answers[k][row], explored),
                    "deviates": bool(left[k, row]),
                }
                for k, subject in enumerate(explored.subjects)
            ],
        }
        for row in rows
    ]


def _said(answer: Array, explored: Explored) -> dict[str, Any]:
    if explored.kind == "values":
        return {"values": [number(float(v)) for v in answer[:_CHANGES]]}
    label = int(explored.oracle.labels(answer[None])[0])
    return {"class": label, "confidence": number(float(answer[label]))}


def _changes(explored: Explored, found: Differences, row: int) -> list[dict[str, Any]]:
    """What changed in a feature vector, largest first; nothing for pictures."""
    assert explored.data is not None
    new, old = found.inputs[0][row], explored.data.inputs[0][found.seed[row]]
    if new.ndim != 1:
        return []
    moved = np.abs(new - old)
    order = [int(i) for i in np.argsort(-moved, kind="stable")[:_CHANGES] if moved[i] > 0]
    names = explored.feature_names
    return [
        {
            "feature": names[i] if len(names) == len(new) else str(i),
            "before": number(float(old[i])),
            "after": number(float(new[i])),
        }
        for i in order
    ]


def save_inputs(explored: Explored, folder: Path) -> None:
    """The generated inputs as data for any other command, with their seeds and majority labels."""
    found = explored.found
    path = folder / INPUTS_FILE
    if found is None:
        path.unlink(missing_ok=True)  # an earlier run's would pass for this one's
        return
    labels = majority(labels_of(found, explored))
    save_npz(path, {**named_inputs(found.inputs), "seed": found.seed, "label": labels})
