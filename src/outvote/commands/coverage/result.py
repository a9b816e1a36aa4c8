"""Turns what `coverage` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from outvote.commands.coverage.job import CoverageJob, NeuronState
from outvote.commands.explore.result import THRESHOLDS, layer_coverage
from outvote.core.case import Data
from outvote.core.model import Model
from outvote.core.result import head, moment, target_head
from outvote.core.target import Run


def coverage_result(
    job: CoverageJob,
    model: Model,
    data: Data,
    hello: Run,
    layers: list[dict[str, Any]],
    state: NeuronState,
    created: datetime,
    seconds: float,
) -> dict[str, Any]:
    """The whole result."""
    covered = layer_coverage(layers, state.best, job.threshold)
    told = f"{covered['covered']} of {covered['neurons']} neurons are covered"
    return {
        **head(
            "coverage",
            [target_head(job.target, hello)],
            {"source": data.source, "instances": data.count, "tests": state.tests},
            created=moment(created),
            seconds=seconds,
            verdict=None,
            summary=f"{told} at t = {job.threshold:g} by {state.tests} inputs.",
        ),
        "model": {"name": model.name, "path": str(job.model), "layers": len(model.layers)},
        "settings": {
            "threshold": job.threshold,
            "sections": job.sections,
            "top": job.top,
            "skip": list(job.skip),
        },
        "coverage": {
            **covered,
            "thresholds": [[t, float((state.best > t).mean())] for t in THRESHOLDS],
            "criteria": criteria(state, job.top),
        },
    }


def criteria(state: NeuronState, top: int) -> dict[str, Any]:
    """DeepGauge's criteria; those that need training data are null without it."""
    found: dict[str, Any] = {f"top_{top}": float(state.top.mean())}
    if not len(state.train_low):
        return {**found, "k_multisection": None, "boundary": None, "strong_activation": None}
    above, below = state.high > state.train_high, state.low < state.train_low
    return {
        **found,
        "k_multisection": float(state.sections.mean()),
        "boundary": float((above.mean() + below.mean()) / 2),
        "strong_activation": float(above.mean()),
    }
