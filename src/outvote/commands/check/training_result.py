"""What a check of training found, as result.json holds it."""

from __future__ import annotations

import math
from typing import Any

from outvote.core.result import number
from outvote.triage.lesson import Learnt


def training_result(trained: Learnt | None) -> dict[str, Any] | None:
    """Loss, optimiser, and every stage: how much was compared, and how far it was apart."""
    if trained is None:
        return None
    stages: dict[str, dict[str, Any]] = {}
    for seen in trained.stages:
        row = stages.setdefault(
            seen.stage,
            {"stage": seen.stage, "exercises": 0, "arrays": 0, "distance": 0.0, "agrees": True},
        )
        far = math.inf if math.isnan(seen.distance) else seen.distance
        row["exercises"] += 1
        row["arrays"] += seen.compared
        row["distance"] = max(row["distance"], far)
        row["agrees"] = row["agrees"] and seen.agrees
    return {
        "loss": dict(trained.loss),
        "optimizer": dict(trained.lesson.optimizer),
        "steps": trained.lesson.steps,
        "targets": list(trained.targets),
        "stages": [{**row, "distance": number(row["distance"])} for row in stages.values()],
    }
