"""Turns what `localize` knows into the dict that result.json holds (docs/result-json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from outvote.commands.localize.job import LocalizeJob
from outvote.core.case import Data
from outvote.core.model import Model
from outvote.core.result import head, moment, target_head
from outvote.core.target import Run
from outvote.localize.parameters import Located, Suspect


def localize_result(
    job: LocalizeJob,
    hellos: Mapping[str, Run],
    model: Model,
    data: Data,
    located: Sequence[tuple[int, Located]],
    missing: Sequence[str],
    *,
    interrupted: bool,
    created: datetime,
    seconds: float,
) -> dict[str, Any]:
    """The whole result; `located` are pairs with the input on which each was looked at."""
    pairs = [_pair(row, found) for row, found in located]
    suspected = any(pair["suspects"] for pair in pairs)
    return {
        **head(
            "localize",
            [target_head(target, hellos.get(target.name)) for target in job.targets],
            {"source": data.source, "instances": data.count},
            created=moment(created),
            seconds=seconds,
            verdict="inconsistent" if suspected else "interrupted" if interrupted else "consistent",
            summary=_summary(pairs),
            interrupted=interrupted,
            warnings=[f"{name} cannot run the model and was left out" for name in missing],
        ),
        "model": {"name": model.name, "path": str(job.model), "layers": len(model.layers)},
        "settings": {"t1": job.t1, "t2": job.t2, "seed": job.seed},
        "pairs": pairs,
    }


def _summary(pairs: Sequence[Mapping[str, Any]]) -> str:
    causes = {
        f"{suspect['layer_kind']} {cause['parameter']}={cause['value']!r}"
        for pair in pairs
        for suspect in pair["suspects"]
        for cause in suspect["causes"]
    }
    layers = {s["layer"] for pair in pairs for s in pair["suspects"]}
    if not layers:
        return "No layer is suspected: targets differ by rounding at most."
    told = f"{len(layers)} layer{'s' * (len(layers) != 1)} suspected"
    if not causes:
        return f"{told}; no single parameter makes the difference."
    return f"{told}; because of {', '.join(sorted(causes))}."


def _pair(row: int, found: Located) -> dict[str, Any]:
    return {
        "targets": [found.reference, found.other],
        "input": row,
        "suspects": [_suspect(suspect) for suspect in found.suspects],
        "cradle": list(found.cradle.red),
        "stopped_at": found.failed or None,
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    return {
        "layer": suspect.layer.name,
        "layer_kind": suspect.layer.kind,
        "rate": suspect.rate,
        "same_as": suspect.same_as or None,
        "causes": [
            {
                "parameter": cause.parameter,
                "value": cause.value,
                "cured_by": list(cause.cured_by),
                "tried": cause.tried,
            }
            for cause in suspect.causes
        ],
        "accidents": [vars(accident) for accident in suspect.accidents],
    }
