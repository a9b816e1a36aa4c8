"""What became of transformed models: whether each agrees with its original, and where it loses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from outvote.commands.check.checked import Checked
from outvote.core.arrays import Array
from outvote.core.result import number
from outvote.core.target import Target
from outvote.findings.finding import Finding
from outvote.localize.layers import Localization


def twins_result(checked: Checked) -> list[dict[str, Any]]:
    """One row for each transformation, in the order asked for."""
    return [_twin(target, checked) for target in checked.job.targets if target.original]


def _twin(target: Target, checked: Checked) -> dict[str, Any]:
    about = [f for f in checked.findings if target.name in f.targets]
    spoilt = [f for f in about if f.triage != "precision"]
    return {
        "target": target.name,
        "transformation": target.twin,
        "original": target.original,
        "verdict": _verdict(target, checked, about, spoilt),
        "distance": number(_distance(target, checked)),
        "answers": _answers(target, checked),
        "spoilt": next((f.layer.name for f in spoilt if f.layer), None),
        "layers": _layers(target, checked, about),
    }


def _verdict(target: Target, checked: Checked, about: list[Finding], spoilt: list[Finding]) -> str:
    """agrees, rounding, precision (the type explains it), spoilt, or how it failed."""
    run = checked.runs.get(target.name)
    if spoilt:
        return "spoilt"
    if run is None or not run.ok:
        return run.outcome.value if run else "not finished"
    if about:
        return "precision"
    if any(
        pair.inconsistent and target.name in pair.targets and pair.targets not in checked.explained
        for pair in checked.comparisons
    ):
        return "spoilt"  # a finding about another twin tells of the same
    return "rounding" if any(target.name in pair for pair in checked.explained) else "agrees"


def _distance(target: Target, checked: Checked, metric: str = "relative") -> float | None:
    """How far it is from its original, on the worst input."""
    found = [
        measured.maximum
        for pair in checked.comparisons
        if set(pair.targets) == {target.name, target.original}
        for measured in pair.measured
        if measured.name == metric
    ]
    return max(found, key=lambda d: math.inf if math.isnan(d) else d) if found else None


def _answers(target: Target, checked: Checked) -> dict[str, Any] | None:
    """What it does to the answers, where the first output is a row of scores for each instance."""
    given = [checked.outputs.get(name) for name in (target.original, target.name)]
    scores = [outputs.rows[0] for outputs in given if outputs is not None]
    if len(scores) < 2 or scores[0].shape != scores[1].shape or not _are_scores(scores[0]):
        return None
    first, second = (np.argmax(rows, axis=1) for rows in scores)
    return {
        "instances": len(first),
        "top1_changed": int(np.sum(first != second)),
        "class_distance": number(_distance(target, checked, "class")),
    }


def _are_scores(rows: Array) -> bool:
    return rows.ndim == 2 and rows.shape[1] > 1 and rows.dtype.kind == "f"


def _layers(target: Target, checked: Checked, about: list[Finding]) -> list[dict[str, Any]]:
    """The error along the graph, where it was looked at: of each node alone, and carried along."""
    found = [f.localization for f in about if f.localization is not None]
    located = next((one for one in found if target.name in one.isolated), None)
    if located is None:
        return []
    kinds = {layer.name: layer.kind for layer in checked.case.model.layers}
    return [_layer(name, kind, located, target.name) for name, kind in kinds.items()]


def _layer(name: str, kind: str, located: Localization, target: str) -> dict[str, Any]:
    carried: Mapping[str, float] = located.carried.get(target, {})
    return {
        "layer": name,
        "kind": kind,
        "alone": number(located.isolated[target].get(name)),
        "carried": number(carried.get(name)),
    }
