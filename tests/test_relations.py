"""Targets held against themselves (`--oracle metamorphic`): the contract of relations, on fakes.

`test_relations_keras.py` plants a fault for each relation in Keras itself.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.cli import main
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import run_check
from outvote.commands.fuzz.run import start
from outvote.core.errors import UsageError
from outvote.core.model import Layer
from outvote.dialects.keras.relations import couples_instances
from outvote.relations import all_relations
from result_form import require_form

GUIDE = Path(__file__).parent.parent / "docs" / "fuzz.md"


def related(model: Path, data: Path, *misdeeds: str, **more: Any) -> Checked:
    targets = tuple(fake(name, misdeed) for name, misdeed in zip("abc", misdeeds, strict=False))
    return run_check(Job(model, targets, data=data, oracle="metamorphic", minimise=3, **more))


def asked_in(result: Any) -> dict[str, int]:
    return {told["relation"]: told["asked"] for told in result["relations"]}


@pytest.mark.parametrize("name", all_relations("keras"))
def test_the_guide_has_a_row_for_every_relation(name: str) -> None:
    title = all_relations("keras")[name].TITLE
    row = rf"^\| `{name}` \| {re.escape(title)} \|"
    assert re.search(row, GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def test_one_honest_target_keeps_every_relation_that_it_is_asked_for(
    fake_model: Path, fake_data: Path
) -> None:
    result = check_result(related(fake_model, fake_data, ""))
    assert result["verdict"] == "consistent"
    relations = asked_in(result)
    assert set(relations) == {"alone", "order", "saved", "linear"}
    asked = sum(relations.values())
    assert result["summary"] == f"On a 4 relations hold, asked {asked} times."


@pytest.mark.parametrize(
    ("misdeed", "broken"),
    [
        ("late:d2", {"alone", "order", "linear"}),  # only the first instance is right
        ("nan:soft", {"alone"}),  # the largest number of the batch is lost
    ],
)
@pytest.mark.slow
def test_who_contradicts_itself_is_accused_and_its_case_made_small(
    misdeed: str, broken: set[str], fake_model: Path, fake_data: Path
) -> None:
    found = related(fake_model, fake_data, misdeed, confirm=1)
    assert {finding.relation for finding in found.findings} == broken
    for finding in found.findings:
        assert (finding.accused, finding.triage) == ("a", "bug")
        assert finding.layer is not None
        assert finding.layer.name == misdeed.partition(":")[2]
        assert finding.proof is not None
        assert len(finding.proof.specimen.model.layers) == 1
        assert (finding.proof.shown, finding.proof.tried) == (1, 1)
        assert finding.title.endswith(f"though {all_relations('keras')[finding.relation].TITLE}")
    assert len({finding.fingerprint for finding in found.findings}) == len(broken)


@pytest.mark.slow
def test_a_linear_layer_that_is_not_is_found(fake_model: Path, tmp_path: Path) -> None:
    data = tmp_path / "loud.npz"
    np.savez(data, x=np.random.default_rng(0).normal(size=(4, 4)).astype("float32") * 20)
    found = related(fake_model, data, "loud:d1")
    assert [(f.relation, f.accused) for f in found.findings] == [("linear", "a")]


@pytest.mark.slow
def test_a_lie_that_contradicts_nothing_takes_a_second_target(
    fake_model: Path, fake_data: Path
) -> None:
    assert related(fake_model, fake_data, "lie:d2").findings == []
    (finding,) = related(fake_model, fake_data, "lie:d2", "", "").findings
    assert (finding.accused, finding.relation) == ("a", "")


def test_without_the_oracle_one_target_is_refused(fake_model: Path, fake_data: Path) -> None:
    with pytest.raises(UsageError, match="a comparison needs two targets"):
        run_check(Job(fake_model, (fake("a"),), data=fake_data))


def test_one_instance_alone_is_asked_nothing_about_batches(
    fake_model: Path, tmp_path: Path
) -> None:
    data = tmp_path / "none.npz"
    np.savez(data, x=np.zeros((1, 4), np.float32))
    found = related(fake_model, data, "")
    assert set(found.relations) == {"saved"}  # one instance: nothing to hold it against


@pytest.mark.slow
def test_a_campaign_on_one_target_finds_what_it_contradicts_itself_in(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    def found(misdeed: str, oracle: str) -> Any:
        job = FuzzJob(
            (SeedFile("s", fake_model, fake_data),),
            (fake("a", misdeed),),
            strategy="layers",
            budget=Budget(mutants=12),
            inputs=4,
            oracle=oracle,
        )
        return start(job, tmp_path / f"{misdeed[:4]}{oracle}")["findings"]

    late = found("late:Dense", "metamorphic")
    assert {(f["accused"], f["layer_kind"]) for f in late} == {("a", "Dense")}
    assert {f["relation"] for f in late} >= {"alone", "order"}
    assert found("", "metamorphic") == []
    with pytest.raises(UsageError, match="a comparison needs two targets"):
        found("late:Dense", "")


def test_the_option_is_told_on_the_command_line(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    asked = ["--targets", "fake", "--data", str(fake_data), "--out", str(tmp_path / "out")]
    assert main(["check", str(fake_model), *asked, "--oracle", "metamorphic", "--quiet"]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    require_form(result)
    assert asked_in(result)["alone"] > 0


@pytest.mark.parametrize(
    ("config", "coupled"),
    [
        ({"axis": 0}, True),
        ({"axis": [1, 0]}, True),
        ({"axes": (0, 1)}, True),
        ({"stateful": True}, True),
        ({"axis": -1}, False),
        ({"axis": None, "stateful": False}, False),
        ({}, False),
    ],
)
def test_layers_that_couple_instances_are_known_by_their_parameters(
    config: dict[str, Any], coupled: bool
) -> None:
    assert couples_instances(Layer("s", "Softmax", config)) is coupled


@pytest.mark.usefixtures("toy_dialect")
def test_a_dialect_without_relations_of_its_own_has_those_of_all(tmp_path: Path) -> None:
    nodes = [{"name": "r", "op": "Relu", "inputs": ["x"]}]
    inputs = [{"name": "x", "shape": [None, 3], "batch": 0}]
    path = tmp_path / "model.toy"
    path.write_text(json.dumps({"inputs": inputs, "nodes": nodes, "outputs": ["r"]}))
    asked = ["--targets", "toy-a", "--oracle", "metamorphic", "--quiet", "--count", "4"]
    assert main(["check", str(path), *asked, "--out", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert set(asked_in(result)) == {"alone", "order"}
