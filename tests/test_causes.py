"""Findings by their causes: one place in a library is told once, the most harmful first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from outvote.core.causes import SYMPTOMS, causes_of
from outvote.report.causes import write_causes

POOL = {"function": "nn.average_pool", "file": "keras/src/backend/torch/nn.py", "line": 9,
        "arguments": "float32[1, 3]"}  # fmt: skip


def finding(fingerprint: str, **more: Any) -> dict[str, Any]:
    usual = {
        "fingerprint": fingerprint,
        "kind": "inconsistency",
        "title": f"torch differs, {fingerprint}",
        "triage": "bug",
        "accused": "torch",
        "targets": ["torch"],
        "layer_kind": "AveragePooling1D",
        "symptom": "values",
        "place": POOL,
        "minimal": {"numbers": 4},
        "count": 1,
    }
    return {**usual, **more}


def test_one_place_is_one_cause_over_layers_and_lines() -> None:
    found = [
        finding("a" * 12, count=2),
        finding("b" * 12, layer_kind="AveragePooling2D", place={**POOL, "arguments": "other"}),
    ]
    (cause,) = causes_of(found)
    assert cause["layers"] == ["AveragePooling1D", "AveragePooling2D"]
    assert cause["findings"] == ["a" * 12, "b" * 12]
    assert cause["count"] == 3
    assert cause["told_by"] == "a" * 12


@pytest.mark.parametrize(
    "other",
    [
        {"place": {**POOL, "function": "nn.max_pool"}},
        {"accused": "jax", "targets": ["jax"]},
        {"symptom": "type", "kind": "shape"},
        {"place": None},
    ],
)
def test_another_function_library_or_symptom_is_another_cause(other: dict[str, Any]) -> None:
    assert len(causes_of([finding("a" * 12), finding("b" * 12, **other)])) == 2


def test_without_a_place_a_finding_is_its_own_cause_and_precision_is_none() -> None:
    found = [finding("a" * 12, place=None), finding("b" * 12, place=None)]
    assert {cause["cause"] for cause in causes_of(found)} == {"a" * 12, "b" * 12}
    assert causes_of([finding("a" * 12, triage="precision")]) == []


def test_silent_wrong_values_come_first_and_speed_last() -> None:
    found = [
        finding(f"{n:012x}", symptom=symptom, place=None)
        for n, symptom in enumerate(reversed(SYMPTOMS))
    ]
    assert [cause["symptom"] for cause in causes_of(found)] == list(SYMPTOMS)
    unknown = finding("f" * 12, triage="unknown", place=None)
    assert causes_of([*found, unknown])[-1]["triage"] == "unknown"


def test_the_smallest_proven_finding_tells_the_cause() -> None:
    found = [
        finding("a" * 12, minimal={"numbers": 9}),
        finding("b" * 12, minimal={"numbers": 2}),
        finding("c" * 12, minimal={"numbers": 1}, triage="unknown"),
    ]
    (cause,) = causes_of(found)
    assert cause["told_by"] == "b" * 12


def test_a_cause_has_one_report_with_its_place_and_the_others(tmp_path: Path) -> None:
    found = [finding("a" * 12), finding("b" * 12, title="torch <differs> elsewhere")]
    text = tmp_path / "findings" / ("a" * 12) / "report.md"
    text.parent.mkdir(parents=True)
    text.write_text("# torch differs\n")
    result = {"findings": found, "causes": causes_of(found)}
    (path,) = write_causes(result, tmp_path)
    told = path.read_text()
    assert path.parent.parent == tmp_path / "causes"
    assert told.startswith("# torch differs")
    assert "<differs>" not in told
    assert write_causes({"findings": [], "causes": []}, tmp_path) == []
    assert not path.exists()
