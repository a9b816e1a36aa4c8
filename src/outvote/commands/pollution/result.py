"""Turns what `pollution` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from typing import Any

from outvote.commands.pollution.job import Evidence
from outvote.core.arrays import Array
from outvote.core.result import head, moment, number, picture, target_head
from outvote.explore.job import Explored, ExploreJob
from outvote.explore.legal import legal_range

_EXAMPLES = 24


def pollution_result(
    job: ExploreJob,
    explored: Explored,
    evidence: Evidence | None,
    suspects: Array,
    scores: Array,
    samples: Array,
    data: dict[str, Any],
) -> dict[str, Any]:
    """The whole result; `suspects` are rows of `samples`, likest first."""
    found = "inconsistent" if len(suspects) else "consistent"
    low, high = legal_range(samples, None)
    limits = (float(low.min()), float(high.max()))
    return {
        **head(
            "pollution",
            [target_head(job.target, explored.hello)],
            data,
            created=moment(explored.created),
            seconds=explored.seconds,
            verdict="interrupted" if explored.interrupted else found,
            summary=_summary(explored, evidence, suspects, len(samples)),
            interrupted=explored.interrupted,
            warnings=explored.warnings,
        ),
        "models": [{"name": s.name, "path": str(s.path)} for s in explored.subjects],
        "settings": {"constraint": job.constraint, "iterations": job.iterations, "seed": job.seed},
        "seeds": explored.tried,
        "differences": {"total": len(evidence.inputs) if evidence else 0},
        "evidence": _evidence(evidence, limits),
        "suspects": [int(i) for i in suspects],
        "scores": [number(float(score)) for score in scores],
        "examples": [
            {
                "sample": int(i),
                "score": number(float(s)),
                "picture": picture(samples[i], limits),
            }
            for i, s in list(zip(suspects, scores, strict=True))[:_EXAMPLES]
        ],
    }


def _evidence(evidence: Evidence | None, limits: tuple[float, float]) -> dict[str, Any] | None:
    if evidence is None:
        return None
    return {
        "true": evidence.true,
        "false": evidence.false,
        "inputs": len(evidence.inputs),
        "moved": evidence.moved,
        "pictures": [picture(item, limits) for item in evidence.inputs[:_EXAMPLES]],
    }


def _summary(explored: Explored, evidence: Evidence | None, suspects: Array, total: int) -> str:
    if explored.interrupted:
        return "Stopped early, before the training data were compared."
    if evidence is None:
        return f"On {explored.tried} seeds no confidence has moved: no sign of pollution."
    if not len(evidence.inputs):
        return (
            f"Confidence has moved from {evidence.true} to {evidence.false}, but no input was "
            "found that splits the models: more --iterations or another --constraint may find some."
        )
    if not len(suspects):
        return f"No training sample is labelled {evidence.false}: nothing to suspect."
    return (
        f"{len(suspects)} of {total} training samples look like {evidence.true} and are labelled "
        f"{evidence.false}."
    )
