"""`repro.py` for ONNX graphs: what it builds computes what was seen, whatever the graph is called.

Scripts are run here on the reference alone; that they run with every runtime is tested where those
are started.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import helper

import onnx_models as made
from onnx_here import NAME, Here
from onnx_models import constant, floats, model, value
from outvote.core.arrays import Array
from outvote.core.case import random_data
from outvote.core.files import named_inputs, save_npz
from outvote.core.outputs import Outputs
from outvote.core.parts import SHORT
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.onnx.script import script, script_of_file, short
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.findings.finding import Finding, Proof
from outvote.judge.observation import Observation
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.vote import Vote
from outvote.localize.isolated import Fault
from outvote.run.pool import Pool

OTHER = "other"
TARGETS = {NAME: BUILT_IN[NAME], OTHER: replace(BUILT_IN[NAME], name=OTHER)}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def finding_of(here: Here, proto: Any, inputs: list[Array], title: str = "they differ") -> Finding:
    """A finding about a whole graph, whose right answer is what the reference gives."""
    found = here.read(proto).model
    specimen = Specimen(found, tuple(inputs)).with_inputs(inputs)
    right = here.run(specimen.model, inputs).outputs
    seen = Observation(
        {NAME: right, OTHER: right},
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


def executed(text: str, folder: Path) -> tuple[int, list[str], dict[str, Any]]:
    """The exit code of a script, the lines that it prints and what it defines."""
    defined: dict[str, Any] = {"__file__": str(folder / "repro.py"), "__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        exec(compile(text, "repro.py", "exec"), defined)
    return int(ended.value.code or 0), printed.getvalue().splitlines(), defined


def same(text: str, here: Here, inputs: list[Array]) -> dict[str, Any]:
    """The script builds a graph, feeds what was fed, and finds its result right on both."""
    code, lines, defined = executed(text, here.context.folder)
    for fed, given in zip(defined["feeds"].values(), inputs, strict=True):
        np.testing.assert_array_equal(fed, given)
    assert code == 0, lines
    assert [line.split()[:2] for line in lines] == [[OTHER, "ok:"], [NAME, "ok:"]]
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
    proto = same(text, here, inputs)["model"]
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(proto))


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
        assert 'onnx.load(os.path.join(folder, "model.onnx"))' in text
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
    text = text_of(here, finding)
    assert "helper.make_node('Gelu', ['x0'], ['y0'], domain='com.microsoft')" in text
    assert "helper.make_opsetid('com.microsoft', 1)" in text


# Targets


def shown_on(here: Here, known: dict[str, Target], **changed: Any) -> str:
    """The script of a finding in which all these targets took part, and gave the same."""
    finding = finding_of(here, made.recurrent_net(), [np.ones((7, 2, 3), np.float32)])
    assert finding.proof is not None
    right = next(iter(finding.proof.observed.outputs.values()))
    seen = replace(finding.proof.observed, outputs=dict.fromkeys(known, right))
    return text_of(here, finding.but(proof=replace(finding.proof, observed=seen), **changed), known)


def test_who_needs_a_process_is_told_by_its_environment(here: Here, tmp_path: Path) -> None:
    setup = tmp_path / "mend.py"
    names = ("onnxruntime", "onnxruntime:all", "openvino:onnx", "opencv", "twin:simplified")
    targets = {name: BUILT_IN[name] for name in names}
    targets["mine"] = replace(
        BUILT_IN[NAME], name="mine", setup=setup, python=Path("bin/python"), env={"A": "b"}
    )
    text = shown_on(here, targets)
    told: dict[str, Any] = {}
    exec(text[text.index("TARGETS = ") : text.index("EXPECTED = ")], told)
    assert list(told["TARGETS"]) == list(targets)
    assert told["TARGETS"]["onnxruntime"] == {"TARGET": "onnxruntime"}
    own = {"TARGET": "mine", "A": "b", "SETUP": str(setup)}
    assert told["TARGETS"]["mine"] == {**own, "PYTHON": str(Path("bin/python").absolute())}
    for name in targets:
        assert f'if os.environ["TARGET"] == {name!r}:' in text
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL", "def transformed", "runpy.run_path"):
        assert level in text


@pytest.mark.parametrize(
    ("triage", "accused", "shown"),
    [
        ("bug", "opencv", [NAME, "opencv"]),
        ("bug", NAME, ["onnxruntime", NAME]),
        ("unknown", None, ["onnxruntime", "openvino:onnx", "opencv", NAME]),
    ],
)
def test_the_accused_and_one_that_is_right_are_enough(
    here: Here, triage: str, accused: str | None, shown: list[str]
) -> None:
    targets = {n: BUILT_IN[n] for n in ("onnxruntime", "openvino:onnx", "opencv", NAME)}
    text = shown_on(
        here, targets, triage=triage, accused=accused, targets=(accused,) if accused else ()
    )
    assert re.findall(r"judge\('([^']+)'", text) == shown


@pytest.mark.parametrize("accused", ["onnxruntime", "openvino:onnx", "opencv", NAME])
def test_one_node_is_shown_in_less_than_a_screen(here: Here, accused: str) -> None:
    targets = {n: BUILT_IN[n] for n in ("onnxruntime", "openvino:onnx", "opencv", NAME)}
    node = helper.make_node("Mul", ["x", "w"], ["y"])
    net = model([node], [value("x", [2])], [value("y", [2])], [constant("w", floats([2, 3]))])
    finding = finding_of(here, net, [floats([1, 2])])
    assert finding.proof is not None
    right = finding.proof.observed.outputs[NAME]
    seen = replace(finding.proof.observed, outputs=dict.fromkeys(targets, right))
    proof = replace(finding.proof, observed=seen)
    finding = finding.but(proof=proof, accused=accused, targets=(accused,))
    assert len(text_of(here, finding, targets).splitlines()) < 25
    glance = short(finding, targets, cast(Pool, here))
    assert glance is not None
    assert len(glance.splitlines()) <= SHORT
    assert glance.splitlines()[-1].startswith("# expected, by ")


def test_what_opencv_has_not_is_made_of_what_it_gives_if_its_worker_made_it(here: Here) -> None:
    targets = {n: BUILT_IN[n] for n in (NAME, "opencv")}
    node = helper.make_node("Less", ["x", "x"], ["y"])
    net = model([node], [value("x", [])], [value("y", [], onnx.TensorProto.BOOL)])
    finding = finding_of(here, net, [np.array(1, np.float32)])
    assert finding.proof is not None
    right = finding.proof.observed.outputs[NAME]
    for gave, line in ((np.array(False), ')[0].astype("bool").reshape(())'), (floats([0]), ")[0]")):
        outputs = {NAME: right, "opencv": Outputs((gave,), (gave.dtype.name,))}
        proof = replace(finding.proof, observed=replace(finding.proof.observed, outputs=outputs))
        accused = finding.but(proof=proof, accused="opencv", targets=("opencv",))
        lines = text_of(here, accused, targets).splitlines()
        assert next(text for text in lines if "net.forward" in text).endswith(line)


def test_texts_are_held_against_texts(here: Here) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    kind = onnx.TensorProto.STRING
    net = model([node], [value("x", [2], kind)], [value("y", [2], kind)])
    given = [np.array(["cat", "däg"])]
    text = text_of(here, finding_of(here, net, given))
    same(text, here, given)
    code, lines, _ = executed(text.replace("'cat', ", "'dog', ", 1), here.context.folder)
    assert (code, lines[-1].split()[1]) == (1, "WRONG:")


# The verdict of a script


def judged(here: Here, y: Array) -> str:
    """What a script says of a result, instead of that of Relu."""
    x = floats([[1, -1], [2, 0]])
    node = helper.make_node("Relu", ["x"], ["y"])
    net = model([node], [value("x", [2, 2])], [value("y", [2, 2])])
    _, _, defined = executed(text_of(here, finding_of(here, net, [x])), here.context.folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        wrong = defined["judge"]("it", y)
    name, word, *_ = printed.getvalue().split()
    assert (name, word) == ("it", "WRONG:" if wrong else "ok:")
    return word


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([[1, 0], [2, 0]], "ok:"),
        ([[1, 0], [2.00001, 0]], "ok:"),  # 1e-5 of the largest is what rounding explains here
        ([[1, 0], [2.00003, 0]], "WRONG:"),
        ([[np.nan, 0], [2, 0]], "WRONG:"),
        ([[np.inf, 0], [2, 0]], "WRONG:"),
        ([[1, 0]], "WRONG:"),
    ],
)
def test_a_script_judges_by_the_tolerance_that_was_measured(
    here: Here, given: Any, word: str
) -> None:
    assert judged(here, floats(given)) == word


def test_another_type_is_wrong(here: Here) -> None:
    assert judged(here, np.array([[1.0, 0], [2, 0]])) == "WRONG:"


# Without a proof: the file itself


def fault_of(here: Here, failures: dict[str, str]) -> Fault:
    layer = here.read(made.recurrent_net()).model.layers[-1]
    given = State(floats([[1, 2]]))
    outputs = {NAME: Outputs((floats([[1, 4]]),), ("float32",))}
    vote = Vote(((NAME,), (OTHER,)), (NAME,), "r")
    return Fault(layer, (given, given), outputs, "crash", 0.5, 1e-3, vote, failures)


def test_a_fault_without_a_proof_is_shown_on_its_file(here: Here) -> None:
    folder = here.context.folder
    text = script_of_file(fault_of(here, {OTHER: "it died"}), TARGETS, folder)
    assert text.startswith('"""Mul node \'mul\'')
    node = helper.make_node("Mul", ["x", "x"], ["y"])
    onnx.save(model([node], [value("x", [1, 2])], [value("y", [1, 2])]), str(folder / "model.onnx"))
    save_npz(folder / "inputs.npz", named_inputs([floats([[1, 2]])]))
    code, lines, _ = executed(text, folder)
    assert (code, [line.split()[:2] for line in lines]) == (0, [[NAME, "ok:"], [OTHER, "ok:"]])


def test_who_fails_comes_last(here: Here) -> None:
    """So that the others have told before a script dies."""
    fault = replace(
        fault_of(here, {NAME: "it died"}), vote=Vote(((OTHER,), (NAME,)), (OTHER,), "r")
    )
    fault = replace(fault, outputs={OTHER: fault.outputs[NAME]})
    text = script_of_file(fault, TARGETS, here.context.folder)
    assert re.findall(r"judge\('([^']+)'", text) == [OTHER, NAME]


def test_where_nobody_gives_a_result_refusing_is_right(here: Here) -> None:
    fault = replace(fault_of(here, {NAME: "refused"}), outputs={})
    text = script_of_file(fault, TARGETS, here.context.folder)
    assert "EXPECTED = None  # by nobody: the others refuse it" in text


def test_a_right_target_may_be_one_that_refuses(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a target gives an empty result and the others refuse, there is no right array."""
    finding = finding_of(here, made.recurrent_net(), [np.ones((7, 2, 3), np.float32)])
    assert finding.proof is not None
    seen = finding.proof.observed
    refused = {OTHER: Run(OTHER, Outcome.ERROR, message="no")}
    seen = replace(seen, outputs={NAME: seen.outputs[NAME]}, failures=refused, kind="shape")
    finding = finding.but(kind="shape", proof=replace(finding.proof, observed=seen))
    text = text_of(here, finding)
    assert "EXPECTED = None" in text
    monkeypatch.setenv("TARGET", NAME)  # as in the process of that target
    code, lines, _ = executed(text, here.context.folder)
    assert (code, lines[0].split()[0]) == (1, "WRONG:")
    broken = text.replace("ReferenceEvaluator(model)", "ReferenceEvaluator(None)")
    assert executed(broken, here.context.folder)[0] == 0
