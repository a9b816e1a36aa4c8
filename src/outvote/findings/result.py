"""A finding as result.json holds it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from outvote.core.dialect import dialect
from outvote.core.model import Layer, Model
from outvote.core.parts import Layers
from outvote.core.result import number
from outvote.findings.finding import Finding, Proof
from outvote.localize.introduction import Introduction
from outvote.localize.layers import Localization


def finding_result(finding: Finding, model: Model, repros: Mapping[str, str]) -> dict[str, Any]:
    layer = finding.layer
    return {
        "fingerprint": finding.fingerprint,
        "kind": finding.kind,
        "symptom": finding.symptom,
        "place": _place(finding.proof),
        "relation": finding.relation or None,
        "stage": finding.stage.name if finding.stage else None,
        "title": finding.title,
        "reason": finding.reason,
        "targets": list(finding.targets),
        "accused": finding.accused,
        "layer": layer.name if layer else None,
        "layer_kind": layer.kind if layer else None,
        "parameters": finding.parameters,
        "causes": [vars(cause) for cause in finding.proof.causes] if finding.proof else [],
        "config": dialect(finding.dialect).layers.parameters(layer) if layer else None,
        "triage": finding.triage,
        "distance": number(finding.distance),
        "metric": finding.metric,
        "inputs": list(finding.inputs),
        "detail": finding.detail,
        "repro": repros.get(finding.fingerprint),
        "minimal": _minimal(finding.proof),
        "evidence": _evidence(finding.proof),
        "localization": localization_result(finding, model),
    }


def _place(proof: Proof | None) -> dict[str, Any] | None:
    return None if proof is None or proof.place is None else dict(vars(proof.place))


def _minimal(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        "layers": len(proof.specimen.model.layers),
        "numbers": proof.specimen.numbers,
        "layers_before": proof.layers_before,
        "numbers_before": proof.numbers_before,
        "seconds": round(proof.seconds, 3),
        "complete": proof.complete,
    }


def _evidence(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        "tolerance": number(proof.observed.tolerance),
        "vote": proof.observed.vote.reason,
        "reference": proof.source or None,
        "errors": {name: number(error) for name, error in proof.errors.items()},
        "shown_again": proof.shown,
        "fresh_workers": proof.tried,
    }


def localization_result(finding: Finding, model: Model) -> dict[str, Any] | None:
    """Both rankings and the map, for the accused against the reference."""
    found = finding.localization
    if found is None or not found.introductions:
        return None
    others = list(found.introductions)
    shown = finding.accused or next((n for n in finding.targets if n in others), others[0])
    if shown not in others:
        shown = others[0]
    rates = found.introductions[shown]
    alone = found.isolated[shown]
    faulty = [f.layer.name for f in found.faults]
    kinds = {layer.name: layer.kind for layer in model.layers}
    inputs = {item.name for item in model.inputs}
    nodes = [_input_node(name) for name in sorted(inputs)]
    known = dialect(model.dialect).layers
    nodes += [_node(layer, found, rates, alone, faulty, known) for layer in model.layers]
    return {
        "targets": [found.reference, shown],
        "direction": "backward" if found.back else "forward",
        "input": finding.inputs[0] if finding.inputs else None,
        "introduction_rate": {
            "threshold": number(rates.threshold),
            "first": rates.first,
            "ranking": _ranking(rates.rate, kinds),
        },
        "isolated": {
            "first": faulty[0] if faulty else None,
            "ranking": _ranking(alone, kinds),
        },
        "map": {
            "nodes": nodes,
            "edges": [
                [layer.name, source] if found.back else [source, layer.name]
                for layer in model.layers
                for source in layer.inputs
            ],
        },
    }


def _input_node(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "Input",
        "delta": 0.0,
        "rate": None,
        "red": False,
        "isolated": None,
        "tolerance": None,
        "faulty": False,
        "shape": None,
        "config": {},
    }


def _node(
    layer: Layer,
    found: Localization,
    rates: Introduction,
    alone: Mapping[str, float],
    faulty: Collection[str],
    known: Layers,
) -> dict[str, Any]:
    name = layer.name
    return {
        "id": name,
        "kind": layer.kind,
        "delta": number(rates.delta.get(name)),
        "rate": number(rates.rate.get(name)),
        "red": name in rates.red,
        "isolated": number(alone.get(name)),
        "tolerance": number(found.tolerances.get(name)),
        "faulty": name in faulty,
        "shape": list(found.shapes[name]) if name in found.shapes else None,
        "config": known.parameters(layer),
    }


def _ranking(values: Mapping[str, float], kinds: Mapping[str, str]) -> list[dict[str, Any]]:
    def size(name: str) -> float:
        return math.inf if math.isnan(values[name]) else values[name]

    ordered = sorted(values, key=size, reverse=True)
    return [{"layer": n, "kind": kinds[n], "value": number(values[n])} for n in ordered]
