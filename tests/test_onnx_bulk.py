"""Campaigns on free graphs: sifted in bulk, cut to nodes, looked into by novelty."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.campaign.job import Budget, FuzzJob
from outvote.campaign.novelty import Novelty, Waiting
from outvote.cli import main
from outvote.commands.fuzz.run import resume, start
from outvote.core.batch import GraphAnswer, GraphCase
from outvote.core.sifted import CauseKey, PartedCase, SuspectCase
from outvote.core.target import Outcome
from outvote.dialects.onnx import bulk
from outvote.dialects.onnx.nouns.batch import DrawGraphs
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.judge.partings import key_of, wording
from outvote.store.summary import _summary

LEAKS = """
import numpy as np
from onnx.reference.ops.op_relu import Relu
from onnx.reference.ops.op_erf import Erf

def broken(self, x):
    raise RuntimeError("this kernel is broken")

Relu._run = lambda self, x: (np.where(x > 0, x, x * np.array(0.01, x.dtype)).astype(x.dtype),)
Erf._run = broken
"""


def ran(*outputs: Any) -> GraphAnswer:
    return GraphAnswer(Outcome.OK, [np.asarray(array, np.float32) for array in outputs])


# Keys


def test_a_key_names_who_leaves_how_and_where() -> None:
    case = GraphCase(b"", [], ("Relu", "Tanh"), "Tanh of float32")
    one = {"a": ran([1.0], [2.0]), "b": ran([1.0], [2.0]), "c": ran([1.0], [np.nan])}
    assert key_of(case, one) == CauseKey("Tanh | c: nan", "Tanh of float32")
    other = {**one, "c": ran([1.0], [3.0])}
    assert key_of(case, other).family == "Tanh | c: values"


def test_errors_are_one_cause_if_they_differ_in_names_and_numbers_alone() -> None:
    told = [
        "RuntimeError: node 'v17' (op Resize): axis 3 is out of bounds for v_2/x",
        "RuntimeError: node 'v5' (op Resize): axis 1 is out of bounds for v_9/y",
        "RuntimeError: node 'v5' (op Resize): the scales are missing",
    ]
    first, second, third = map(wording, told)
    assert first == second != third
    case = GraphCase(b"", [], ("Resize",))
    failed = GraphAnswer(Outcome.ERROR, message=told[0])
    key = key_of(case, {"a": ran([1.0]), "b": failed})
    assert key.family == "Resize | b: error"
    assert "out of bounds" in key.detail


# Novelty


def suspect(number: int, family: str, detail: str = "") -> PartedCase:
    key = CauseKey(family, detail)
    return PartedCase(number, CauseKey(f"whole {family}"), (SuspectCase(key, b"", ()),))


def added(novelty: Novelty[SuspectCase], one: PartedCase) -> frozenset[str]:
    return novelty.add(one.number, one.key, one.cases)


def looked(novelty: Novelty[SuspectCase], found: str = "") -> Waiting[SuspectCase]:
    one = novelty.next()
    assert one is not None
    novelty.looked(one, [found] if found else [], bool(found))
    return one


def test_what_was_never_looked_at_comes_before_what_was() -> None:
    novelty: Novelty[SuspectCase] = Novelty()
    for number, (family, detail) in enumerate([("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")]):
        assert added(novelty, suspect(number, family, detail)) == frozenset()
    assert looked(novelty, "f").case.key.family == "a"
    assert looked(novelty, "g").case.key.family == "b"
    assert novelty.waiting == 2
    assert added(novelty, suspect(9, "b", "1")) == {"g"}  # known by its look: counted
    assert novelty.waiting == 2


def test_a_family_that_brings_nothing_new_is_left_alone() -> None:
    novelty: Novelty[SuspectCase] = Novelty()
    for number in range(6):
        added(novelty, suspect(number, "a", str(number)))
    for _ in range(3):
        looked(novelty)
    assert novelty.next() is None
    assert novelty.waiting == 3


# Words


def test_the_summary_says_where_the_time_went_and_what_waits() -> None:
    split = {"searching": 66.0, "looking": 30.0, "confirming": 4.0, "waiting": 12, "after": 6.0}
    told = _summary(9000, [], split, "graphs")
    assert told == (
        "9000 graphs at 6000 a minute, nothing found. Of the time 66% ran new graphs, 30% looked "
        "into differences, 4% confirmed findings; 12 kinds of differences wait."
    )


def test_without_targets_of_one_dialect_there_are_no_free_graphs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    targets = "onnxruntime,onnx-reference"
    assert main(["fuzz", "--targets", targets, "--budget", "5"]) == 2
    assert "name at least one seed" in capsys.readouterr().err


# Whole campaigns


@pytest.mark.frameworks
def test_planted_faults_are_found_in_bulk_cut_to_a_node_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "leaks.py"
    script.write_text(LEAKS)
    kinds = ("Relu", "Erf", "Tanh", "Add", "Mul")
    monkeypatch.setattr(bulk, "DrawGraphs", functools.partial(DrawGraphs, kinds=kinds))
    reference = BUILT_IN["onnx-reference"]
    planted = replace(reference, name="planted", library="planted", setup=script)
    targets = (BUILT_IN["onnxruntime"], reference, planted, BUILT_IN["openvino:onnx"])
    budget = Budget(mutants=2000)
    job = FuzzJob((), targets, "layers", budget, confirm=1, minimise=3.0)
    result = start(job, tmp_path / "out")
    found = {(f["accused"], f["layer_kind"], f["kind"]): f for f in result["findings"]}
    assert {("planted", "Relu", "inconsistency"), ("planted", "Erf", "crash")} <= set(found)
    leak = found["planted", "Relu", "inconsistency"]
    assert leak["triage"] == "bug"
    assert leak["count"] > 5  # further ones are known by their look
    assert leak["minimal"]["layers"] == 1
    sieve = result["sieve"]
    assert sieve["tested"] == result["tested"] >= 2000
    assert sieve["parted"] > 100 * len(result["findings"]) / 10
    assert sieve["looking"] > 0
    assert f"{sieve['waiting']} kinds of differences wait" in result["summary"]
    busy = {target["name"]: target["seconds"] for target in result["targets"]}
    assert busy["openvino:onnx"] > 0  # it had its sample
    more = resume(
        tmp_path / "out",
        {target.name: target for target in targets},
        changes={"budget": Budget(mutants=2500)},
    )
    assert more["tested"] >= 2500
    before = {f["fingerprint"] for f in result["findings"]}
    assert before <= {f["fingerprint"] for f in more["findings"]}
