"""Turns what `nan` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from outvote.campaign.probes.evolution import Evolved
from outvote.commands.nan.job import NanJob
from outvote.core.case import Data
from outvote.core.model import Model
from outvote.core.result import head, moment, number, target_head
from outvote.core.target import Run


def nan_result(
    job: NanJob,
    hello: Run,
    model: Model,
    data: Data,
    found: Evolved,
    evaluations: int,
    layers: list[dict[str, Any]],
    case: str | None,
    *,
    interrupted: bool,
    created: datetime,
    seconds: float,
) -> dict[str, Any]:
    """The whole result; `layers` are their ranges on what was found, `case` its folder."""
    nan = next((x["layer"] for x in layers if x["nans"]), None)
    stopped = "interrupted" if interrupted else "consistent"
    return {
        **head(
            "nan",
            [target_head(job.target, hello)],
            {"source": data.source, "instances": data.count},
            created=moment(created),
            seconds=seconds,
            verdict="inconsistent" if found.failure else stopped,
            summary=_summary(job, found, layers, f"{evaluations} cases in {seconds:.1f} s"),
            interrupted=interrupted,
            warnings=[] if layers else ["the layers were not watched on what was found"],
        ),
        "model": {"name": model.name, "path": str(job.model), "layers": len(model.layers)},
        "settings": {"target": job.target.name, "level": job.level, "seed": job.seed},
        "failure": found.failure or None,
        "evaluations": evaluations,
        "fitness": number(found.fitness),
        "first_overflow": first_overflow(layers),
        "first_nan": nan,
        "layers": layers,
        "case": case,
    }


def first_overflow(layers: Sequence[dict[str, Any]]) -> str | None:
    """The first layer that gives what is no finite number."""
    return next((x["layer"] for x in layers if x["infinities"] or x["nans"]), None)


def _summary(job: NanJob, found: Evolved, layers: Sequence[dict[str, Any]], rate: str) -> str:
    nan = next((x for x in layers if x["nans"]), None)
    if found.failure == "nan" and nan is not None:
        return (
            f"NaN in {nan['layer_kind']} layer {nan['layer']!r} after {rate}; "
            f"the first layer that overflows is {first_overflow(layers)!r}."
        )
    if found.failure:
        return f"{job.target.name} failed while NaN was hunted, after {rate}."
    return f"No NaN in {rate}."
