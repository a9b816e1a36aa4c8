"""`repro.py` for ONNX graphs: what it builds computes what was seen, whatever the graph is called.

The part that builds and judges is run here; that the whole script runs, with every runtime, is
tested where those are started.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import onnx_models as made
from onnx_here import NAME, Here
from onnx_models import constant, floats, model, value
from outvote.core.arrays import Array
from outvote.core.case import random_data
from outvote.core.files import named_inputs, save_npz
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.onnx.script import script, script_of_file
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.findings.finding import Finding, Proof
from outvote.judge.observation import Observation
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.vote import Vote
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool

TARGETS = {NAME: BUILT_IN[NAME], "onnxruntime": BUILT_IN["onnxruntime"]}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def finding_of(here: Here, proto: Any, inputs: list[Array], title: str = "they differ") -> Finding:
    """A finding about a whole graph, whose right answer is what the reference gives."""
    found = here.read(proto).model
    specimen = Specimen(found, tuple(inputs)).with_inputs(inputs)
    right = here.run(specimen.model, inputs).outputs
    seen = Observation(
        {NAME: right, "onnxruntime": right},
        {},
        "inconsistency",
        Gap(1.0, 1e-5),
        Rounding(()),
        Vote(((NAME,),), (NAME,), "a majority"),
    )
    proof = Proof(specimen, seen, {}, {}, 1, 1, 0.0, True)
    return Finding("inconsistency", title, "", (NAME,), NAME, "bug", "onnx", proof=proof)


def text_of(here: Here, finding: Finding, targets: dict[str, Target] | None = None) -> str:
    found = script(finding, targets or TARGETS, cast(Pool, here), here.context.folder)
    assert found is not None
    return found


def parts_of(text: str, folder: Path) -> dict[str, Any]:
    """What the script defines, without running any target."""
    tree = ast.parse(text)
    kept: list[ast.stmt] = [
        node
        for node in tree.body
        if isinstance(node, ast.Import | ast.FunctionDef)
        or (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) in ("TARGETS", "EXPECTED", "RUNNERS", "TWINS")
        )
    ]
    defined: dict[str, Any] = {"__file__": str(folder / "repro.py")}
    exec(compile(ast.Module(kept, []), "repro.py", "exec"), defined)
    return defined


def built(text: str, folder: Path) -> tuple[Any, list[Array], dict[str, Any]]:
    defined = parts_of(text, folder)
    proto, feeds = defined["build"]()
    return proto, feeds, defined


def same(text: str, here: Here, inputs: list[Array]) -> dict[str, Any]:
    """The script builds a valid graph, feeds what was fed, and finds its result right."""
    proto, feeds, defined = built(text, here.context.folder)
    for fed, given in zip(feeds, inputs, strict=True):
        np.testing.assert_array_equal(fed, given)
    names = [item.name for item in proto.graph.input]
    (found, *_) = ReferenceEvaluator(proto).run(None, dict(zip(names, feeds, strict=True)))
    assert defined["judge"](np.asarray(found)).startswith("ok: relative distance 0,")
    return defined


def named(net: Any, rename: Callable[[str], str]) -> Any:
    """The same graph under other names."""
    for values in (net.graph.input, net.graph.output, net.graph.initializer):
        for item in values:
            item.name = rename(item.name)
    for node in net.graph.node:
        node.name = rename(node.name)
        node.input[:] = [rename(name) if name else "" for name in node.input]
        node.output[:] = [rename(name) if name else "" for name in node.output]
    return net


@pytest.mark.parametrize("net", [made.convolution_net, made.residual_net, made.recurrent_net])
def test_the_graph_is_written_out(net: Any, here: Here) -> None:
    """Constants, attributes, arguments and outputs that are left out: all stand in the script."""
    inputs = list(random_data(here.read(net()).model, 2, 0).inputs)
    text = text_of(here, finding_of(here, net(), inputs))
    assert "onnx.load" not in text
    proto, *_ = built(text, here.context.folder)
    inferred = onnx.shape_inference.infer_shapes(proto)
    onnx.checker.check_model(inferred)
    same(text, here, inputs)


HOSTILE = '"]); __import__("os").abort() #\n\'\'\'"""\\'


def test_names_of_the_graph_never_become_code(here: Here) -> None:
    net = named(made.residual_net(), lambda name: f"{HOSTILE}{name}")
    inputs = list(random_data(here.read(net).model, 2, 0).inputs)
    text = text_of(here, finding_of(here, net, inputs, title=HOSTILE))
    plain = text_of(here, finding_of(here, made.residual_net(), inputs, title="plain"))
    without = [line for line in text.splitlines() if "abort" not in line]
    assert without == plain.splitlines()[1:], "only the title tells the two apart"
    same(text, here, inputs)


def test_long_arrays_lie_beside_the_script(here: Here) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    wide = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    net = model([node], [value("x", [30, 40])], [value("y", [30, 30])], [constant("w", wide)])
    x = wide.T.copy()
    text = text_of(here, finding_of(here, net, [x]))
    with np.load(here.context.folder / "arrays.npz") as file:
        assert len(file.files) == 3, "input, constant and the right answer"
    assert len(text) < 6000
    same(text, here, [x])


def test_sub_graphs_and_functions_are_loaded_from_the_file(here: Here) -> None:
    for net, shape in ((made.branching_net(), (2, 2)), (made.function_net(), (2, 3))):
        x = np.ones(shape, np.float32)
        text = text_of(here, finding_of(here, net, [x]))
        assert 'onnx.load(os.path.join(os.path.dirname(__file__), "model.onnx"))' in text
        onnx.save(net, str(here.context.folder / "model.onnx"))
        save_npz(here.context.folder / "inputs.npz", named_inputs([x]))
        same(text, here, [x])


def test_numbers_that_numpy_lacks_have_no_script(here: Here) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    kind = onnx.TensorProto.BFLOAT16
    net = model([node], [value("x", [2], kind)], [value("y", [2], kind)])
    finding = finding_of(here, net, [floats([1, -1])])
    assert script(finding, TARGETS, cast(Pool, here), here.context.folder) is None


def test_without_a_proof_there_is_no_script(here: Here) -> None:
    finding = Finding("crash", "t", "", (NAME,), NAME, "bug", "onnx")
    assert script(finding, TARGETS, cast(Pool, here), here.context.folder) is None


def test_operators_of_other_domains_keep_them(here: Here) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    imports = [helper.make_opsetid("com.microsoft", 1)]
    net = model([node], [value("x", [2])], [value("y", [2])], imports=imports)
    found = here.read(net).model
    right = Outputs((floats([1, 2]),), ("float32",))
    seen = Observation(
        {NAME: right}, {}, "inconsistency", Gap(1.0, 1e-5), Rounding(()), Vote((), (), "")
    )
    proof = Proof(Specimen(found, (floats([1, 2]),)), seen, {}, {}, 1, 1, 0.0, True)
    finding = Finding("inconsistency", "t", "", (NAME,), None, "unknown", "onnx", proof=proof)
    proto, *_ = built(text_of(here, finding), here.context.folder)
    assert proto.graph.node[0].domain == "com.microsoft"
    assert {item.domain: item.version for item in proto.opset_import} == {
        "": 17,
        "com.microsoft": 1,
    }


# Targets


def test_every_target_is_told_by_its_environment(here: Here, tmp_path: Path) -> None:
    setup = tmp_path / "mend.py"
    targets = {
        name: BUILT_IN[name]
        for name in ("onnxruntime", "onnxruntime:all", "openvino:onnx", "opencv", "twin:simplified")
    }
    targets["mine"] = replace(
        BUILT_IN[NAME], name="mine", setup=setup, python=Path("bin/python"), env={"A": "b"}
    )
    finding = finding_of(here, made.recurrent_net(), [np.ones((7, 2, 3), np.float32)])
    assert finding.proof is not None
    right = next(iter(finding.proof.observed.outputs.values()))
    seen = replace(finding.proof.observed, outputs=dict.fromkeys(targets, right))
    finding = finding.but(proof=replace(finding.proof, observed=seen))
    text = text_of(here, finding, targets)
    defined = parts_of(text, here.context.folder)
    told = defined["TARGETS"]
    assert list(told) == list(targets)
    assert told["onnxruntime"]["LEVEL"] == "ORT_DISABLE_ALL"
    assert told["onnxruntime:all"]["LEVEL"] == "ORT_ENABLE_ALL"
    assert told["twin:simplified"]["TWIN"] == "simplified"
    assert "def transformed" in defined["TWINS"]["simplified"]
    python = str(Path("bin/python").absolute())
    own = {"TARGET": "mine", "RUNTIME": "reference", "A": "b", "SETUP": str(setup)}
    assert told["mine"] == {**own, "PYTHON": python}
    assert set(defined["RUNNERS"]) == {told[name]["RUNTIME"] for name in told}


@pytest.mark.parametrize(
    ("triage", "accused", "shown"),
    [
        ("bug", "opencv", ["opencv", NAME]),
        ("bug", NAME, [NAME, "onnxruntime"]),
        ("unknown", None, ["onnxruntime", "openvino:onnx", "opencv", NAME]),
    ],
)
def test_the_accused_and_one_that_is_right_are_enough(
    here: Here, triage: str, accused: str | None, shown: list[str]
) -> None:
    targets = {n: BUILT_IN[n] for n in ("onnxruntime", "openvino:onnx", "opencv", NAME)}
    finding = finding_of(here, made.recurrent_net(), [np.ones((7, 2, 3), np.float32)])
    assert finding.proof is not None
    right = next(iter(finding.proof.observed.outputs.values()))
    seen = replace(finding.proof.observed, outputs=dict.fromkeys(targets, right))
    wrong = (accused,) if accused else ()
    proof = replace(finding.proof, observed=seen)
    finding = finding.but(proof=proof, triage=triage, accused=accused, targets=wrong)
    defined = parts_of(text_of(here, finding, targets), here.context.folder)
    assert list(defined["TARGETS"]) == shown


# The verdict of a script


def judged(here: Here, expected: str = "") -> Callable[[Array], str]:
    x = floats([[1, -1], [2, 0]])
    node = helper.make_node("Relu", ["x"], ["y"])
    net = model([node], [value("x", [2, 2])], [value("y", [2, 2])])
    defined = parts_of(text_of(here, finding_of(here, net, [x])), here.context.folder)
    return cast(Callable[[Array], str], defined["judge"])


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([[1, 0], [2, 0]], "ok: relative distance 0,"),
        ([[1, 0], [2.000002, 0]], "ok: relative distance 9.54e-07,"),
        ([[1, 0], [2.1, 0]], "WRONG: relative distance 0.05"),
        ([[np.nan, 0], [2, 0]], "WRONG: relative distance nan"),
        ([[np.inf, 0], [2, 0]], "WRONG: relative distance inf"),
        ([[1, 0]], "WRONG: shape (1, 2), float32"),
    ],
)
def test_a_script_judges_by_the_tolerance_that_was_measured(
    here: Here, given: Any, word: str
) -> None:
    assert judged(here)(floats(given)).startswith(word)


def test_another_type_is_wrong(here: Here) -> None:
    assert judged(here)(np.zeros((2, 2))).startswith("WRONG: shape (2, 2), float64")


# Without a proof: the file itself


def fault_of(here: Here, failures: dict[str, str]) -> Fault:
    layer = here.read(made.recurrent_net()).model.layers[-1]
    given = State(floats([[1, 2]]))
    outputs = {NAME: Outputs((floats([[1, 4]]),), ("float32",))}
    vote = Vote(((NAME,), ("onnxruntime",)), (NAME,), "r")
    return Fault(layer, (given, given), outputs, "crash", 0.5, 1e-3, vote, failures)


def test_a_fault_without_a_proof_is_shown_on_its_file(here: Here) -> None:
    text = script_of_file(fault_of(here, {"onnxruntime": "it died"}), TARGETS, here.context.folder)
    defined = parts_of(text, here.context.folder)
    assert text.startswith('"""Mul node \'mul\'')
    assert list(defined["TARGETS"]) == [NAME, "onnxruntime"]
    np.testing.assert_array_equal(defined["EXPECTED"], floats([[1, 4]]))
    assert defined["judge"](floats([[1, 4]])).startswith("ok")


def test_where_nobody_gives_a_result_refusing_is_right(here: Here) -> None:
    fault = replace(fault_of(here, {NAME: "refused"}), outputs={})
    text = script_of_file(fault, TARGETS, here.context.folder)
    assert parts_of(text, here.context.folder)["EXPECTED"] is None
    assert "nobody: the others refuse it" in text


def test_a_right_target_may_be_one_that_refuses(here: Here) -> None:
    """Where a target gives an empty result and the others refuse, there is no right array."""
    finding = finding_of(here, made.recurrent_net(), [np.ones((7, 2, 3), np.float32)])
    assert finding.proof is not None
    seen = finding.proof.observed
    refused = {"onnxruntime": Run("onnxruntime", Outcome.ERROR, message="no")}
    seen = replace(seen, outputs={NAME: seen.outputs[NAME]}, failures=refused, kind="shape")
    finding = finding.but(kind="shape", proof=replace(finding.proof, observed=seen))
    defined = parts_of(text_of(here, finding), here.context.folder)
    assert defined["EXPECTED"] is None
    assert defined["judge"](floats([1])).startswith("WRONG: shape")
