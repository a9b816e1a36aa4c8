"""`check` on ONNX graphs and real runtimes: agreement, planted faults, types, batches."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnx_models as made
from onnx_models import constant, floats, model, saved, value
from outvote.bench.reader import read_file
from outvote.cli import main
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.core import protocol
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.parts import SHORT
from outvote.core.states import State
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.onnx.script import script, short
from outvote.dialects.onnx.targets import BUILT_IN, DEFAULT
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.run.process import Limits

pytestmark = pytest.mark.frameworks

PLANTED = replace(
    BUILT_IN["onnx-reference"],
    name="planted",
    library="planted",
    setup=Path(__file__).with_name("onnx_planted.py"),
)
MODES = ("onnxruntime:all", "openvino:onnx:dynamic")
HONEST = tuple(BUILT_IN[name] for name in DEFAULT)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    targets = [*HONEST, *(BUILT_IN[name] for name in MODES), PLANTED]
    with LocalPool(targets, limits=Limits(silence_seconds=20)) as running:
        for name, run in running.start().items():
            assert run.ok, f"{name}: {run.message}\n{run.detail}"
        yield running


def checked(
    pool: Pool,
    proto: Any,
    folder: Path,
    targets: Sequence[Target] = HONEST,
    data: dict[str, Any] | None = None,
    **more: Any,
) -> Checked:
    job = Job(model=saved(proto, folder), targets=tuple(targets), data=data, **more)
    return check_in(pool, job)


@pytest.mark.parametrize(
    "net",
    [
        *(made.convolution_net, made.branching_net, made.function_net),
        *(made.loop_net, made.scan_net),
    ],
    ids=lambda n: n.__name__,
)
def test_runtimes_agree(net: Any, pool: Pool, tmp_path: Path) -> None:
    targets = (*HONEST, *(BUILT_IN[name] for name in MODES))
    found = checked(pool, net(), tmp_path, targets, every_layer=True)
    finished = [name for name, run in found.runs.items() if run.ok]
    assert {"onnxruntime", "onnxruntime:all", "onnx-reference"} <= set(finished)
    refused = [run for run in found.runs.values() if not run.ok]
    assert all(run.outcome is Outcome.UNSUPPORTED for run in refused), refused
    assert found.verdict == "consistent", [f.title for f in found.findings]


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "Relu": ({}, "inconsistency"),
    "Softmax": ({"axis": 1}, "inconsistency"),
    "Transpose": ({"perm": [0, 1, 3, 2]}, "shape"),
    "Erf": ({}, "crash"),
    "Abs": ({}, "crash"),
}


@pytest.mark.parametrize("operator", FAULTS)
def test_a_planted_fault_is_found_accused_and_made_small(
    operator: str, pool: Pool, tmp_path: Path
) -> None:
    attributes, kind = FAULTS[operator]
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node(operator, ["c"], ["g"], name="guilty", **attributes),
        node("Mul", ["g", "g"], ["m"], name="square"),
        node("ReduceMean", ["m"], ["y"], name="mean", axes=[2, 3], keepdims=0),
    ]
    weight = constant("w", np.random.default_rng(0).normal(size=(3, 2, 2, 2)).astype(np.float32))
    proto = model(nodes, [value("x", ["n", 2, 5, 5])], [value("y", ["n", 3])], [weight])
    found = checked(pool, proto, tmp_path, (*HONEST, PLANTED))
    assert found.verdict == "inconsistent"
    (finding,) = [f for f in found.findings if f.triage == "bug"]
    assert finding.accused == "planted"
    assert finding.layer is not None
    assert (finding.layer.name, finding.layer.kind) == ("guilty", operator)
    assert finding.kind == kind
    assert finding.proof is not None
    specimen = finding.proof.specimen
    assert [layer.kind for layer in specimen.model.layers] == [operator]
    assert specimen.numbers <= 24
    text = script(finding, {t.name: t for t in (*HONEST, PLANTED)}, pool, tmp_path)
    assert text is not None
    path = tmp_path / "repro.py"
    path.write_text(text)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert [name for name, line in lines.items() if "WRONG" in line] == ["planted"], done.stdout


def test_a_script_at_a_glance_prints_what_a_runtime_gives(pool: Pool, tmp_path: Path) -> None:
    """Of the planted fault's smallest case, written for each runtime as if it were accused."""
    node = helper.make_node("Relu", ["x"], ["y"])
    proto = model([node], [value("x", [1, 2])], [value("y", [1, 2])])
    (finding,) = checked(pool, proto, tmp_path, (*HONEST, PLANTED)).findings
    targets = {t.name: t for t in (*HONEST, PLANTED)}
    assert short(finding, targets, pool) is None  # a setup script is not at a glance
    assert finding.proof is not None
    for name in ("onnxruntime", "openvino:onnx", "opencv", "onnx-reference"):
        text = short(finding.but(accused=name), targets, pool)
        assert text is not None
        assert len(text.splitlines()) <= SHORT
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert str(finding.proof.observed.outputs[name].arrays[0]) in done.stdout


def test_a_hang_is_an_outcome(tmp_path: Path) -> None:
    proto = model([helper.make_node("Neg", ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
    targets = (*HONEST[:1], HONEST[3], PLANTED)
    job = Job(model=saved(proto, tmp_path), targets=targets)
    with LocalPool(targets, limits=Limits(silence_seconds=5)) as impatient:
        found = check_in(impatient, job, out=tmp_path)
    assert found.runs["planted"].outcome is Outcome.HANG
    (finding,) = found.findings
    assert (finding.kind, finding.accused) == ("hang", "planted")
    proof = tmp_path / found.repros[finding.fingerprint]
    text = proof.read_text()
    assert text.count("alarm(60)") == 1  # it ends in any case
    proof.write_text(text.replace("alarm(60)", "alarm(2)"))
    done = subprocess.run([sys.executable, str(proof)], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "planted                  WRONG: exit code -14" in done.stdout


def read(pool: Pool, proto: Any, folder: Path) -> Model:
    run = read_file(pool, "onnx-reference", saved(proto, folder))
    assert run.ok, run.message
    return run.reply.model


def ask(
    pool: Pool, name: str, proto: Any, folder: Path, *arrays: Any, **more: Any
) -> Run[protocol.Ran]:
    """A model's run on one target."""
    inputs = tuple(pool.blobs.put(array) for array in arrays)
    model = read(pool, proto, folder)
    return pool.ask(name, protocol.RunModel(model=model, inputs=inputs, batch=2, **more))


EVERYBODY = [*DEFAULT, *MODES]


@pytest.mark.parametrize("name", EVERYBODY)
def test_instances_are_run_in_batches_and_joined(name: str, pool: Pool, tmp_path: Path) -> None:
    for batch in ("n", 1):
        node = helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 1])
        proto = model([node], [value("x", [batch, 2, 3])], [value("y", [batch, 3, 2])])
        x = np.arange(30, dtype=np.float32).reshape(5, 2, 3)
        run = ask(pool, name, proto, tmp_path, x)
        assert run.ok, run.message
        np.testing.assert_array_equal(run.reply.outputs.arrays[0], x.transpose(0, 2, 1))


@pytest.mark.parametrize("name", ["onnxruntime", "openvino:onnx", "onnx-reference"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint8", "bool"])
def test_every_type_goes_in_and_comes_out(
    name: str, dtype: str, pool: Pool, tmp_path: Path
) -> None:
    code = getattr(TensorProto, {"float64": "DOUBLE"}.get(dtype, dtype.upper()))
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    sizes = constant("s", np.array([4], np.int64))
    proto = model([node], [value("x", [2, 2], code)], [value("y", [4], code)], [sizes])
    x = np.array([[0, 1], [1, 0]], np.float32 if dtype == "bfloat16" else dtype)
    run = ask(pool, name, proto, tmp_path, x)
    assert run.ok, run.message
    assert run.reply.outputs.dtypes == (dtype,)
    np.testing.assert_array_equal(run.reply.outputs.arrays[0], x.reshape(4))


def text_net() -> Any:
    """Texts go in, are joined and looked up; texts and numbers come out."""
    text = TensorProto.STRING
    nodes = [
        helper.make_node("StringConcat", ["x", "end"], ["joined"], name="join"),
        helper.make_node(
            "LabelEncoder", ["joined"], ["y"], name="code", domain="ai.onnx.ml",
            keys_strings=["cat!", "dog!"], values_int64s=[1, 2], default_int64=-1,
        ),
    ]  # fmt: skip
    end = helper.make_tensor("end", text, [1], [b"!"])
    outputs = [value("joined", ["n"], text), value("y", ["n"], made.INT64)]
    imports = [helper.make_opsetid("ai.onnx.ml", 2)]
    return model(nodes, [value("x", ["n"], text)], outputs, [end], opset=20, imports=imports)


def test_texts_go_in_and_come_out(pool: Pool, tmp_path: Path) -> None:
    x = np.array(["cat", "dog", "\u732b", ""])
    found = checked(pool, text_net(), tmp_path, data={"x": x}, every_layer=True)
    assert found.verdict == "consistent", [f.title for f in found.findings]
    assert {n for n, run in found.runs.items() if run.ok} == {"onnxruntime", "onnx-reference"}
    for name in ("onnxruntime", "onnx-reference"):
        joined, codes = found.outputs[name].arrays
        assert codes.tolist() == [1, 2, -1, -1]
        assert len(set(joined.tolist())) == 4
        assert found.outputs[name].dtypes == ("string", "int64")


def test_a_fault_in_texts_is_found_and_its_script_holds_them(pool: Pool, tmp_path: Path) -> None:
    targets = (BUILT_IN["onnxruntime"], BUILT_IN["onnx-reference"], PLANTED)
    job = Job(model=saved(text_net(), tmp_path), targets=targets, out=tmp_path / "out")
    found = check_in(pool, job, out=tmp_path / "out")  # texts at random: words of the nodes
    (finding,) = [f for f in found.findings if f.triage == "bug"]
    assert (finding.accused, finding.layer and finding.layer.name) == ("planted", "join")
    folder = tmp_path / "out" / "findings" / finding.fingerprint
    with np.load(folder / "inputs.npz") as file:
        assert {file[name].dtype.kind for name in file.files} == {"U"}
    assert any("np.array([" in line for line in (folder / "repro.py").read_text().splitlines())


def test_data_of_the_wrong_kind_for_texts_is_refused(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x has dtype float32; the model takes texts \(str\)"):
        checked(pool, text_net(), tmp_path, data={"x": floats([1, 2])})


def test_bfloat16_is_computed_as_such(pool: Pool, tmp_path: Path) -> None:
    """A node alone is given bfloat16 too, though its tensors have travelled as float32."""
    cast = helper.make_node("Cast", ["x"], ["b"], name="narrow", to=TensorProto.BFLOAT16)
    back = helper.make_node("Cast", ["b"], ["y"], name="wide", to=TensorProto.FLOAT)
    proto = model([cast, back], [value("x", [3])], [value("y", [3])])
    model_read = read(pool, proto, tmp_path)
    x = State(floats([1.01, 2.02, 3.03]))
    for name in ("onnxruntime", "onnx-reference"):
        assert pool.ask(name, protocol.OpenSession(model=model_read, inputs=(x,))).ok
        (own,) = pool.ask(name, protocol.StepLayer(layer="narrow")).reply.own or ()
        assert own.dtype == "bfloat16"
        alone = pool.ask(name, protocol.StepLayer(layer="wide", given=(own,)))
        assert alone.ok, alone.message
        (isolated,) = alone.reply.isolated or ()
        assert isolated.dtype == "float32"
        np.testing.assert_array_equal(isolated.array, own.array)


def test_openvino_takes_inputs_that_nothing_reads_and_that_pass_through(
    pool: Pool, tmp_path: Path
) -> None:
    """OpenVINO drops the one, renames the other, and would run on memory that nobody has set."""
    nodes = [
        helper.make_node("Sum", ["a"], ["s"]),
        helper.make_node("Relu", ["b"], ["r"]),
    ]
    inputs = [value(name, [2]) for name in ("unused", "a", "b", "through")]
    proto = model(nodes, inputs, [value("s", [2]), value("r", [2]), value("through", [2])])
    feeds = [floats([i, -i]) for i in range(1, 5)]
    for name in ("openvino:onnx", "openvino:onnx:dynamic", "onnxruntime", "onnx-reference"):
        run = ask(pool, name, proto, tmp_path, *feeds)
        assert run.ok, run.message
        told = [array.tolist() for array in run.reply.outputs.arrays]
        assert told == [[2, -2], [3, 0], [4, -4]], name


def test_numbers_without_a_dimension_keep_their_shape(pool: Pool, tmp_path: Path) -> None:
    node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    proto = model([node], [value("x", [2, 2])], [value("y", [])])
    for name in EVERYBODY:
        run = ask(pool, name, proto, tmp_path, floats([[1, 2], [3, 4]]))
        assert run.ok, run.message
        assert (run.reply.outputs.arrays[0].shape, float(run.reply.outputs.arrays[0])) == (
            (),
            4.0,
        ), name


def test_an_input_without_a_dimension_stays_one(pool: Pool, tmp_path: Path) -> None:
    node = helper.make_node("Add", ["x", "y"], ["z"])
    proto = model([node], [value("x", []), value("y", [2])], [value("z", [2])])
    data = {"x0": floats(3), "x1": floats([1, 2])}
    found = checked(pool, proto, tmp_path, data=data)
    assert found.verdict == "consistent"
    assert {o.arrays[0].tolist() == [4, 5] for o in found.outputs.values()} == {True}


def test_what_a_runtime_lacks_is_a_gap_not_an_error(pool: Pool, tmp_path: Path) -> None:
    node = helper.make_node("Unheard", ["x"], ["y"], domain="own")
    imports = [helper.make_opsetid("own", 1)]
    proto = model([node], [value("x", [2])], [value("y", [2])], imports=imports)
    for name in EVERYBODY:
        run = ask(pool, name, proto, tmp_path, floats([1, 2]))
        assert run.outcome is Outcome.UNSUPPORTED, f"{name}: {run.message}"


def test_an_attribute_of_a_newer_version_is_a_gap(pool: Pool, tmp_path: Path) -> None:
    """ONNX Runtime takes opset 25, with Attention as it was in 24."""
    node = helper.make_node("Attention", ["x", "x", "x"], ["y"], left_window_size=1)
    proto = model([node], [value("x", [1, 1, 2, 1])], [value("y", [1, 1, 2, 1])], opset=25)
    run = ask(pool, "onnxruntime", proto, tmp_path, floats([[[[1], [2]]]]))
    assert run.outcome is Outcome.UNSUPPORTED, run.message
    assert "left_window_size" in run.message


def test_jitter_moves_results_by_rounding(pool: Pool, tmp_path: Path) -> None:
    for name in EVERYBODY:
        x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
        plain = ask(pool, name, made.convolution_net(), tmp_path, x)
        moved = ask(pool, name, made.convolution_net(), tmp_path, x, jitter=1)
        assert plain.ok, plain.message
        assert moved.ok, moved.message
        far = np.abs(plain.reply.outputs.arrays[0] - moved.reply.outputs.arrays[0]).max()
        assert 0 < far < 1e-5, name


def test_an_optimised_graph_is_watched_inside(pool: Pool, tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    for name in EVERYBODY:
        run = ask(pool, name, made.convolution_net(), tmp_path, x, watch=("relu", "shape"))
        assert run.ok, run.message
        (relu,), (shape,) = ([s.array for s in run.reply.watched[n]] for n in ("relu", "shape"))
        assert (relu.shape, shape.tolist()) == ((1, 4, 8, 8), [2]), name
        assert relu.min() == 0


def with_external_data(folder: Path, location: str) -> Path:
    tensor = TensorProto(name="w", dims=[4], data_type=made.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    proto = model([node], [value("x", [4])], [value("y", [4])], [tensor])
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_travels_with_the_model(pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    path = with_external_data(tmp_path, "weights/w.bin")
    run = read_file(pool, "onnx-reference", path)
    assert run.ok, run.message
    (weight,) = run.reply.model.layer("add").weights
    np.testing.assert_array_equal(pool.blobs.get(weight.digest), [0, 1, 2, 3])


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/hostname", "link.bin", "missing.bin", ""]
)
def test_external_data_cannot_leave_the_folder(location: str, pool: Pool, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(UsageError, match=r"outside its folder|no file beside it"):
        read_file(pool, "onnx-reference", with_external_data(folder, location))


def of_opset(opset: int) -> Any:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="gemm", transB=1)
    constants = [constant("w", floats([[1.5, 0.5]] * 3)), constant("b", floats([1, 2, 3]))]
    shapes = [value("x", ["n", 2])], [value("y", ["n", 3])]
    return model([node], *shapes, constants, opset=opset)


def of_trees() -> Any:
    """What scikit-learn's trees become: a regressor of one tree with two leaves."""
    tree = helper.make_node(
        *("TreeEnsembleRegressor", ["x"], ["y"], "tree"),
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_falsenodeids=[2, 0, 0],
        nodes_featureids=[1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_nodeids=[0, 1, 2],
        nodes_treeids=[0] * 3,
        nodes_truenodeids=[1, 0, 0],
        nodes_values=[0.0, 0.0, 0.0],
        target_ids=[0, 0],
        target_nodeids=[1, 2],
        target_treeids=[0, 0],
        target_weights=[1.5, -2.0],
    )
    imports = [helper.make_opsetid("ai.onnx.ml", 3)]
    return model([tree], [value("x", ["n", 2])], [value("y", ["n", 1])], imports=imports)


def of_integers() -> Any:
    """Numbers of words in, their vectors summed out: two free dimensions, one of them a batch."""
    nodes = [
        helper.make_node("Gather", ["w", "ids"], ["e"], name="embed"),
        helper.make_node("ReduceSum", ["e", "axes"], ["y"], name="sum", keepdims=0),
    ]
    table = constant("w", np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32))
    constants = [table, constant("axes", np.array([1], np.int64))]
    inputs = [value("ids", ["batch", "time"], made.INT64)]
    return model(nodes, inputs, [value("y", ["batch", 4])], constants)


def of_another_domain() -> Any:
    """What ONNX Runtime alone has, behind what ONNX' second set has."""
    linear = helper.make_node(
        *("LinearRegressor", ["x"], ["t"], "linear"),
        domain="ai.onnx.ml",
        coefficients=[1.0, 2.0, 3.0, 4.0],
        targets=2,
    )
    gelu = helper.make_node("Gelu", ["t"], ["y"], "gelu", domain="com.microsoft")
    imports = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1)]
    shapes = [value("x", ["n", 2])], [value("y", ["n", 2])]
    return model([linear, gelu], *shapes, imports=imports)


def through_a_sequence() -> Any:
    """Tensors go into a sequence and out of it; what stands between is no tensor."""
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="pack"),
        helper.make_node("SequenceAt", ["s", "i"], ["t"], name="at"),
        helper.make_node("Relu", ["t"], ["y"], name="relu"),
    ]
    one = constant("i", np.array(1, np.int64))
    return model(nodes, [value("x", ["n", 2])], [value("y", ["n", 2])], [one])


@pytest.mark.parametrize(
    ("proto", "able"),
    [
        *((of_opset(opset), {"onnxruntime", "onnx-reference"}) for opset in (7, 9, 14, 22, 24)),
        (of_another_domain(), {"onnxruntime", "onnxruntime:all"}),
        (of_trees(), {"onnxruntime", "onnx-reference"}),
        (of_integers(), {*DEFAULT}),
        (through_a_sequence(), {"onnxruntime", "onnxruntime:all", "onnx-reference"}),
    ],
)
def test_any_opset_and_domain_that_a_runtime_takes(
    proto: Any, able: set[str], pool: Pool, tmp_path: Path
) -> None:
    found = checked(pool, proto, tmp_path, (*HONEST, BUILT_IN["onnxruntime:all"]))
    assert able <= {name for name, run in found.runs.items() if run.ok}
    others = [run for run in found.runs.values() if not run.ok]
    assert all(run.outcome is Outcome.UNSUPPORTED for run in others), others
    assert found.verdict == "consistent", [f.title for f in found.findings]


def in_float64(*, outside: bool) -> Any:
    """A product of matrices in float64; the outputs are float64 too, or float32 again."""
    double = TensorProto.DOUBLE
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], name="wide", to=double),
        helper.make_node("MatMul", ["d", "w"], ["m"], name="product"),
        helper.make_node("Tanh", ["m"], ["t"], name="tanh"),
        helper.make_node("Cast", ["t"], ["y"], name="narrow", to=made.FLOAT),
    ]
    weight = constant("w", np.random.default_rng(0).normal(size=(4, 4)))
    kind = double if outside else made.FLOAT
    ends = [value("x", ["n", 4])], [value("t" if outside else "y", ["n", 4], kind)]
    return model(nodes[: 3 if outside else 4], *ends, [weight])


def test_who_computes_float64_in_float32_judges_no_float64(pool: Pool, tmp_path: Path) -> None:
    """OpenVINO and OpenCV would be two against two, each other's witnesses of the same rounding."""
    found = checked(pool, in_float64(outside=True), tmp_path, every_layer=True)
    assert found.verdict == "consistent", [f.title for f in found.findings]
    assert {n for n, run in found.runs.items() if run.ok} == {"onnxruntime", "onnx-reference"}
    told = found.runs["openvino:onnx"].message
    assert told == "computes float64 in narrower numbers: what it gives says nothing"


def test_float64_inside_a_graph_excludes_nobody(pool: Pool, tmp_path: Path) -> None:
    found = checked(pool, in_float64(outside=False), tmp_path, every_layer=True)
    assert found.verdict == "consistent", [f.title for f in found.findings]
    assert found.runs["openvino:onnx"].ok


def test_a_graph_without_inputs_is_checked(pool: Pool, tmp_path: Path) -> None:
    node = helper.make_node("RandomUniform", [], ["y"], name="drawn", shape=[2, 2], seed=1.0)
    found = checked(pool, model([node], [], [value("y", [2, 2])]), tmp_path)
    (finding,) = found.findings  # nobody is told how to draw
    assert (finding.triage, finding.layer and finding.layer.name) == ("unknown", "drawn")
    assert check_result(found)["examples"][0]["picture"] is None


def own_operator(domain: str, operator: str) -> Any:
    text = TensorProto.STRING
    node = helper.make_node(operator, ["x"], ["y"], domain=domain, name="own")
    outputs = [value("y", ["n"], text)]
    imports = [helper.make_opsetid(domain, 1)]
    return model([node], [value("x", ["n"], text)], outputs, imports=imports)


UPPER = """
import numpy as np
from onnx.reference.op_run import OpRun

class StringUpper(OpRun):
    op_domain = "ai.onnx.contrib"

    def _run(self, x):
        return (np.char.upper(x.astype(str)),)
"""
NAMED = """
from pathlib import Path
LIBRARY = Path(__file__).with_name("operators.so")
"""


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a compiled library, a Python file, and one that names the library."""
    folder = tmp_path_factory.mktemp("operators")
    package = find_spec("onnxruntime_extensions")  # to import it is to import torch
    assert package is not None
    assert package.origin is not None
    (library,) = Path(package.origin).parent.glob("_extensions_pydll*.so")
    shutil.copy(library, folder / "operators.so")
    (folder / "python.py").write_text(UPPER)
    (folder / "both.py").write_text(UPPER + NAMED)
    return folder


@pytest.mark.parametrize(
    ("custom", "told"),
    [
        ("operators.so", "2 targets agree on 8 inputs; onnx-reference cannot run this model."),
        ("python.py", "only onnx-reference could run the model"),
        ("both.py", "3 targets agree on 8 inputs."),
    ],
)
def test_operators_of_the_user_s_own_run_where_code_is_allowed(
    custom: str, told: str, operators: Path, tmp_path: Path, capsys: Any
) -> None:
    path = saved(own_operator("ai.onnx.contrib", "StringUpper"), tmp_path)
    targets = "onnxruntime,onnxruntime:all,onnx-reference"
    command = ["check", str(path), "--targets", targets, "--out", str(tmp_path / "out"), "--quiet"]
    command += ["--custom", str(operators / custom)]
    assert main(command) == 2
    refused = capsys.readouterr().err
    assert "brings operators, which are code; if you trust it, add --allow-code" in refused
    main([*command, "--allow-code"])
    shown = capsys.readouterr()
    assert told in shown.out + shown.err


def test_free_dimensions_are_set_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    path = saved(made.convolution_net(), tmp_path)
    options = ["--targets", "onnxruntime,onnx-reference", "--out", str(tmp_path / "out")]
    assert main(["check", str(path), "--dim", "batch=3", *options]) == 0
    assert main(["check", str(path), "--dim", "bath=3", *options]) == 2
    assert "no dimension 'bath'; free are batch" in capsys.readouterr().err
