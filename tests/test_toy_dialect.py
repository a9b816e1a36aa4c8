"""A second dialect goes through everything, and not a line of the driver knows it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.cli import main
from outvote.core.dialect import dialect, dialect_of
from outvote.core.errors import UsageError
from outvote.dialects.keras.reference import reference as reference_of_keras

pytestmark = pytest.mark.usefixtures("toy_dialect")
RNG = np.random.default_rng(0)
NODES: list[dict[str, Any]] = [
    {"name": "m1", "op": "MatMul", "inputs": ["x"], "weights": [RNG.normal(size=(4, 6)).tolist()]},
    {"name": "r", "op": "Relu", "inputs": ["m1"]},
    {"name": "scaled", "op": "Mul", "inputs": ["r", "scale"]},
    {"name": "t", "op": "Transpose", "inputs": ["scaled"], "attributes": {"perm": [1, 0, 2]}},
    {"name": "back", "op": "Transpose", "inputs": ["t"], "attributes": {"perm": [1, 0, 2]}},
    {"name": "soft", "op": "Softmax", "inputs": ["back"], "attributes": {"axis": 1}},
]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """Instances of three rows of four numbers; what they are scaled by is the same for all."""
    inputs = [
        {"name": "x", "shape": [None, 3, 4], "batch": 0},
        {"name": "scale", "shape": [6], "batch": None},
    ]
    path = tmp_path / "model.toy"
    path.write_text(json.dumps({"inputs": inputs, "nodes": NODES, "outputs": ["soft", "t"]}))
    return path


def outvote(folder: Path, *arguments: str, fault: str = "") -> tuple[int, dict[str, Any]]:
    """A command with a third library that lies, or does not."""
    config = folder / "outvote.toml"
    config.write_text(f'[targets.odd]\nextends = "toy-c"\nenv = {{ TOY_FAULT = "{fault}" }}\n')
    targets = ["--targets", "toy-a,toy-b,odd", "--config", str(config)]
    code = main([*arguments, *targets, "--out", str(folder / "out"), "--quiet"])
    return code, json.loads((folder / "out" / "result.json").read_text())


def test_the_dialect_is_found_by_its_folder_and_by_the_suffix(toy: Path) -> None:
    assert dialect_of(toy).name == "toy"
    own = dialect("toy").reference
    assert own is not None
    assert own.reference is not reference_of_keras
    with pytest.raises(UsageError, match="the dialect toy has no mutate: mutating models is not"):
        _ = dialect("toy").mutation


def test_honest_libraries_agree(toy: Path, tmp_path: Path) -> None:
    code, result = outvote(tmp_path, "check", str(toy))
    assert (code, result["verdict"]) == (0, "consistent")
    assert result["data"]["instances"] == 8


@pytest.mark.parametrize("op", ["MatMul", "Relu", "Mul", "Transpose", "Softmax"])
def test_a_fault_is_accused_localised_judged_made_small_and_proved(
    toy: Path, tmp_path: Path, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, result = outvote(tmp_path, "check", str(toy), fault=op)
    assert code == 1
    bugs = [f for f in result["findings"] if f["triage"] == "bug"]
    if op == "Softmax":  # Keras has one too, and on two rows means another thing by it
        assert bugs == result["findings"]
    (found,) = bugs
    assert (found["accused"], found["layer_kind"]) == ("odd", op)
    first = next(node["name"] for node in NODES if node["op"] == op)
    assert found["layer"] == first
    assert found["minimal"]["layers"] == 1
    assert found["minimal"]["numbers"] <= 3 * 4 + 4 * 6
    if op != "Transpose":  # not in the toy's reference: the vote decides
        assert "independent NumPy computation" in found["reason"]
        script = tmp_path / "out" / found["repro"]
        assert "keras" not in script.read_text()
        monkeypatch.setenv("TOY_FAULT", "")  # which the script sets
        with pytest.raises(SystemExit, match="odd gives something else"):
            runpy.run_path(str(script))


def test_a_campaign_uses_the_rules_that_need_no_dialect(toy: Path, tmp_path: Path) -> None:
    code, result = outvote(
        tmp_path, "fuzz", str(toy), "--strategy", "lemon", "--budget", "12", fault="Relu"
    )
    assert code == 1
    assert result["valid"] > 0
    assert {row["rule"] for row in result["rules"]} == {"LR", "LS", "LC"}
    assert {f["layer_kind"] for f in result["findings"] if f["triage"] == "bug"} == {"Relu"}


def test_a_campaign_searches_no_inputs_by_logits_that_a_dialect_does_not_know(
    tmp_path: Path,
) -> None:
    inputs = [{"name": "x", "shape": [None, 3, 4], "batch": 0}]
    path = tmp_path / "plain.toy"
    path.write_text(json.dumps({"inputs": inputs, "nodes": NODES[:2], "outputs": ["r"]}))
    code, result = outvote(tmp_path, "fuzz", str(path), "--budget", "12", fault="Relu")
    assert (code, result["strategy"], result["tested"]) == (1, "mixed", 12)
    assert {row["rule"] for row in result["rules"] if row["tested"]} <= {"LR", "LS", "LC"}


def test_what_a_dialect_does_not_offer_is_a_sentence(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nan", str(toy), "--target", "toy-a", "--out", str(tmp_path / "o")]) == 2
    assert "toy" in capsys.readouterr().err
    assert main(["check", str(toy), "--targets", "torch,jax", "--out", str(tmp_path / "o")]) == 2
    assert "target 'torch' runs models of keras, not of toy" in capsys.readouterr().err
