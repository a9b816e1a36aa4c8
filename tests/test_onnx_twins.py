"""Transformed models as targets: they agree with their originals, or are told where they do not."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import onnx_models as made
from conftest import fake
from onnx_models import constant, floats, model, saved, value
from outvote.cli import main
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.core.errors import UsageError
from outvote.core.target import Target
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT, TWINS
from outvote.judge.compare import pairs_of
from outvote.judge.vote import vote
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.choose import known_targets, with_twins

HONEST = tuple(BUILT_IN[name] for name in DEFAULT)
ALL = tuple(BUILT_IN[f"twin:{name}"] for name in TWINS)
SPOILING = replace(
    BUILT_IN["twin:simplified"],
    name="spoiling",
    setup=Path(__file__).with_name("onnx_spoiling.py"),
)
node = helper.make_node


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with LocalPool([*HONEST, *ALL, SPOILING]) as running:
        for name, run in running.start().items():
            assert run.ok, f"{name}: {run.message}\n{run.detail}"
        yield running


def checked(pool: Pool, proto: Any, folder: Path, *twins: Any, **more: Any) -> Checked:
    job = Job(model=saved(proto, folder), targets=(*HONEST[:2], *twins), count=4, **more)
    return check_in(pool, job, out=folder / "out")


def rows(found: Checked) -> dict[str, dict[str, Any]]:
    return {row["transformation"]: row for row in check_result(found)["twins"]}


@pytest.mark.frameworks
def test_every_transformation_agrees_as_far_as_its_type_explains(
    pool: Pool, tmp_path: Path
) -> None:
    found = checked(pool, made.convolution_net(), tmp_path, *ALL)
    assert found.verdict == "consistent", [f.title for f in found.findings]
    told = {name: row["verdict"] for name, row in rows(found).items()}
    same = dict.fromkeys(("simplified", "slim", "opset", "optimised"), "agrees")
    assert told == same | dict.fromkeys(("fp16", "int8", "qdq"), "precision")
    compared = {pair.targets for pair in found.comparisons}
    assert compared == {("onnxruntime", name) for name in ("openvino:onnx", *(t.name for t in ALL))}


@pytest.mark.frameworks
def test_quantisation_tells_the_layers_that_lose_most(pool: Pool, tmp_path: Path) -> None:
    """One weight far beyond the others leaves few of the 255 steps to these."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(8, 8)).astype(np.float32) for _ in range(3)]
    weights[1][0, 0] = 60
    nodes = [node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"], name=f"mm{i}") for i in range(3)]
    constants = [constant(f"w{i}", w) for i, w in enumerate(weights)]
    proto = model(nodes, [value("t0", ["n", 8])], [value("t3", ["n", 8])], constants)
    found = checked(pool, proto, tmp_path, BUILT_IN["twin:int8"])
    row = rows(found)["int8"]
    assert [layer["layer"] for layer in row["layers"]] == ["mm0", "mm1", "mm2"]
    alone = {layer["layer"]: layer["alone"] for layer in row["layers"]}
    assert all(0 < error < 0.1 for error in alone.values())
    assert row["distance"] == pytest.approx(row["layers"][-1]["carried"], rel=0.5)


@pytest.mark.frameworks
def test_what_float16_cannot_hold_is_spoilt_and_the_first_such_node_is_named(
    pool: Pool, tmp_path: Path
) -> None:
    nodes = [
        node("Mul", ["x", "k"], ["a"], name="thousands"),
        node("Mul", ["a", "a"], ["b"], name="millions"),
        node("Mul", ["b", "small"], ["y"], name="back"),
    ]
    constants = [constant("k", np.float32(2000)), constant("small", np.float32(1e-6))]
    proto = model(nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], constants)
    found = checked(pool, proto, tmp_path, BUILT_IN["twin:fp16"])
    row = rows(found)["fp16"]
    assert (row["verdict"], row["spoilt"]) == ("spoilt", "millions")
    (finding,) = [f for f in found.findings if f.triage != "precision"]
    assert finding.accused == "twin:fp16"


def wrong_numbers(twin: Target, what: str, folder: Path) -> Target:
    """A twin whose tool writes a wrong scale, or forgets a bias; a script of its own is a cause."""
    script = folder / f"{twin.mode}_{what}.py"
    shutil.copy(Path(__file__).with_name("onnx_wrong_numbers.py"), script)
    return replace(twin, name=f"{twin.mode}, wrong {what}", setup=script, env={"SPOILS": what})


@pytest.mark.frameworks
def test_what_a_type_explains_excuses_no_wrong_scale_and_no_forgotten_bias(tmp_path: Path) -> None:
    """Beside these, the honest conversions to the same types are excused."""
    honest = tuple(BUILT_IN[f"twin:{name}"] for name in ("fp16", "int8", "qdq"))
    wrong = [wrong_numbers(twin, what, tmp_path) for twin in honest for what in ("scale", "bias")]
    targets = (HONEST[0], *honest, *wrong)
    path = saved(made.convolution_net(), tmp_path)
    with LocalPool(targets) as pool:
        found = check_in(pool, Job(model=path, targets=targets, count=4, minimise=0))
    told = {row["target"]: (row["verdict"], row["spoilt"]) for row in check_result(found)["twins"]}
    excused = {target.name: ("precision", None) for target in honest}
    assert told == excused | {target.name: ("spoilt", "gemm") for target in wrong}


@pytest.mark.frameworks
def test_a_fault_that_a_tool_makes_of_two_nodes_is_found_and_made_small(
    pool: Pool, tmp_path: Path
) -> None:
    found = checked(pool, made.convolution_net(), tmp_path, SPOILING)
    (finding,) = found.findings
    assert (finding.accused, finding.triage) == ("spoiling", "bug")
    assert finding.layer is not None
    assert finding.layer.name == "relu"
    assert finding.proof is not None
    assert [layer.kind for layer in finding.proof.specimen.model.layers] == ["Conv", "Relu"]
    assert rows(found)["simplified"]["spoilt"] == "relu"


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("operator", "attributes", "kind"),
    [("Transpose", {"perm": [0, 1]}, "shape"), ("Erf", {}, "crash")],
)
def test_a_fault_that_a_tool_makes_of_one_node_is_found(
    operator: str, attributes: dict[str, Any], kind: str, pool: Pool, tmp_path: Path
) -> None:
    nodes = [
        node("Sigmoid", ["x"], ["s"], name="before"),
        node(operator, ["s"], ["t"], name="guilty", **attributes),
        node("Neg", ["t"], ["y"], name="after"),
    ]
    proto = model(nodes, [value("x", [2, 3])], [value("y", None)])
    found = checked(pool, proto, tmp_path, SPOILING)
    (finding,) = found.findings
    assert (finding.accused, finding.kind, finding.triage) == ("spoiling", kind, "bug")
    assert finding.layer is not None
    assert finding.layer.name == "guilty"


@pytest.mark.frameworks
def test_the_script_transforms_the_graph_itself(pool: Pool, tmp_path: Path) -> None:
    """Nothing of ours: the text of the transformation stands in it."""
    nodes = [node("Mul", ["x", "k"], ["y"], name="far")]
    proto = model(nodes, [value("x", [1, 2])], [value("y", [1, 2])], [constant("k", floats(1e6))])
    found = checked(pool, proto, tmp_path, BUILT_IN["twin:fp16"], data={"x": floats([[1, 2]])})
    (finding,) = found.findings
    script = tmp_path / "out" / found.repros[finding.fingerprint]
    assert "outvote" not in script.read_text()
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert told["onnxruntime"].startswith("ok:")
    assert told["twin:fp16"].startswith("WRONG:")


@pytest.mark.frameworks
def test_the_command_takes_transformations_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(made.convolution_net(), tmp_path)
    options = ["--targets", "onnx-reference", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(["check", str(path), "--twins", "optimised,int8", *options]) == 0
    shown = capsys.readouterr().out
    assert "Transformed models" in shown
    page = (tmp_path / "out" / "report.html").read_text()
    assert "twin:int8: error along the graph" in page
    assert '<polyline class="carried" points="' in page
    assert "twin:int8 loses most in" in (tmp_path / "out" / "report.md").read_text()
    assert main(["check", str(path), "--twins", "smaller", *options]) == 2
    assert "--twins 'smaller' is unknown; choose from simplified, slim" in capsys.readouterr().err


def test_who_runs_the_original_comes_along() -> None:
    known = {name: t for name, t in known_targets().items() if t.dialect == "onnx"}
    found = with_twins([known["opencv"]], ["fp16"], known)
    assert [target.name for target in found] == ["opencv", "onnxruntime", "twin:fp16"]
    plain = {name: target for name, target in known.items() if not target.twin}
    with pytest.raises(UsageError, match="no transformations of models of onnx"):
        with_twins([], ["fp16"], plain)


def test_a_twin_is_held_against_its_original_alone() -> None:
    twin = replace(fake("twin"), original="a")
    targets = {t.name: t for t in (fake("a"), fake("b"), twin)}
    assert pairs_of(targets) == [("a", "b"), ("a", "twin")]
    del targets["a"]  # where that is not there, against everybody
    assert pairs_of(targets) == [("b", "twin")]


def test_a_twin_has_no_vote_against_its_original() -> None:
    twins = [replace(fake(n, library="a"), original="a") for n in ("t1", "t2")]
    targets = {t.name: t for t in (fake("a"), *twins)}
    voted = vote(targets, [("t1", "t2")], None)
    assert voted.majority == ("a",)
    assert voted.reason.startswith("a transformed model must agree with its original")
    others = targets | {"b": fake("b")}
    assert not vote(others, [("a", "t1")], None).decided  # b differs too, and for its own reasons


def test_transformations_need_nothing_of_ours() -> None:
    """Their text goes into repro.py; and each file there is one that can be asked for."""
    folder = Path("src/outvote/dialects/onnx/workers/twins")
    files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert {path.stem for path in files} == set(TWINS)
    for path in files:
        tree = ast.parse(path.read_text())
        imported = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        imported += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
        assert not any(name.startswith("outvote") for name in imported), path
