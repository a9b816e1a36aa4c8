"""Seeds of ONNX campaigns: node tests with known answers, and the zoo exported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_here import Here
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.cli import main
from outvote.commands.fuzz.run import start
from outvote.core.errors import UsageError
from outvote.core.known_answers import KnownAnswers, answers_arrays, answers_of
from outvote.core.outputs import Outputs
from outvote.dialects.onnx.nouns.requests import BuildExamples
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.dialects.onnx.zoo import has, members_of, seed_file
from outvote.dialects.onnx.zoo import node_tests as cached


def outputs(*arrays: Any) -> Outputs:
    found = tuple(np.asarray(array) for array in arrays)
    return Outputs(found, tuple(array.dtype.name for array in found))


RIGHT = KnownAnswers(outputs(np.array([1.0, np.nan], "float32")), 1e-3, 1e-7)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (outputs(np.array([1.0, np.nan], "float32")), ""),
        (outputs(np.array([1.0009, np.nan], "float32")), ""),
        (outputs(np.array([1.0011, np.nan], "float32")), "1 of 2 values are others"),
        (outputs(np.array([1.0, 0.0], "float32")), "1 of 2 values are others"),
        (outputs(np.array([1.0, np.nan], "float64")), "float64[2] instead of float32[2]"),
        (outputs(np.array([[1.0, np.nan]], "float32")), "float32[1, 2] instead of float32[2]"),
        (outputs(np.array([1.0], "float32"), np.array([1.0], "float32")), "2 outputs instead of 1"),
    ],
)
def test_an_answer_is_contradicted_beyond_its_tolerance(found: Outputs, told: str) -> None:
    assert RIGHT.contradiction(found) == told


def test_answers_travel_in_a_data_file_and_have_tolerances_of_their_own() -> None:
    again = answers_of(answers_arrays(RIGHT), "it")
    assert again is not None
    assert (again.relative, again.absolute, again.outputs.dtypes) == (1e-3, 1e-7, ("float32",))
    assert not again.contradiction(RIGHT.outputs)
    plain = answers_of({"answer0": np.array(["a"]), "answer2": np.array(0)}, "it")
    assert plain is not None
    assert plain.outputs.dtypes == ("string",)
    assert answers_of({"x": np.zeros(2)}, "it") is None


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"answer_types": np.array(["int8", "int8"])}, "answer_types of d.npz must name a type"),
        ({"answer_tolerance": np.array([0.1])}, "two numbers: relative and absolute"),
        ({"answer_tolerance": np.array([0.1, -1.0])}, "two numbers: relative and absolute"),
        ({"answer0": np.zeros(1, complex)}, "must be numbers or texts"),
    ],
)
def test_answers_that_are_none_are_refused(arrays: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        answers_of({"answer0": np.zeros(1), **arrays}, "d.npz")


@pytest.mark.slow
def test_node_tests_become_files_with_their_answers(tmp_path: Path) -> None:
    here = Here(tmp_path)
    built = here.reply(BuildExamples(only="test_bernoulli_seed"))
    assert not built.examples
    assert built.left_out["test_bernoulli_seed"] == "Bernoulli draws numbers"
    (example,) = here.reply(BuildExamples(only="test_celu_expanded")).examples
    assert "Celu" not in example.operators
    built = here.reply(BuildExamples(only="test_argmax_default_axis_example"))
    example = next(one for one in built.examples if not one.name.endswith("last_index"))
    assert (example.name, example.operators) == ("test_argmax_default_axis_example", ("ArgMax",))
    here.blobs.copy_file(example.data.digest, tmp_path / "data.npz")
    with np.load(tmp_path / "data.npz") as data:
        assert data["answer0"].tolist() == [data["x"].argmax(axis=0).tolist()]
        assert data["answer_types"].tolist() == ["int64"]


@pytest.fixture
def few_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds two node tests, so that none is built."""
    monkeypatch.setattr(cached, "user_cache_path", lambda name: tmp_path / name)
    version = onnx.__version__
    folder = tmp_path / "outvote" / "zoo" / f"{cached.VERSION}-onnx-{version}"
    folder.mkdir(parents=True)
    (folder / "index.json").write_text(json.dumps({"test_a": ["Relu"], "test_b": ["Sin", "Relu"]}))
    return folder


def test_names_stand_for_models_tests_operators_and_groups(few_examples: Path) -> None:
    assert has("onnx:anything")
    assert not has("lenet5")
    assert members_of("onnx:lenet5") == ("onnx:lenet5",)
    assert "onnx:tiny-vector" in members_of("onnx:tiny")
    assert members_of("onnx:test_a") == ("onnx:test_a",)
    assert members_of("onnx:Sin") == ("onnx:test_b",)
    assert members_of("onnx:Relu") == members_of("onnx:nodes") == ("onnx:test_a", "onnx:test_b")
    assert seed_file("onnx:test_a")[1] == few_examples / "test_a.npz"
    with pytest.raises(UsageError, match="no ONNX seed 'onnx:Relo'; did you mean 'onnx:Relu'"):
        members_of("onnx:Relo")


def test_the_zoo_builds_exported_models_alone(
    few_examples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["zoo", "list"]) == 0
    assert "onnx:lenet5" in capsys.readouterr().out.split()
    assert main(["zoo", "build", "onnx:test_a"]) == 2
    assert "node tests are seeds of `outvote fuzz` alone" in capsys.readouterr().err
    assert main(["zoo", "build", "onnx:lenet5", "--target", "jax"]) == 2
    assert "exported to ONNX by torch; leave out --target jax" in capsys.readouterr().err


def example(folder: Path, kind: str, x: Any, answer: Any, name: str = "seed") -> SeedFile:
    """One node, what it reads, and what it is said to answer."""
    model, data = folder / f"{name}.onnx", folder / f"{name}.npz"
    array, right = np.asarray(x), np.asarray(answer)
    code = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [helper.make_node(kind, ["x"], ["y"])],
        "example",
        [helper.make_tensor_value_info("x", code(array.dtype), array.shape)],
        [helper.make_tensor_value_info("y", code(right.dtype), right.shape)],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(model))
    np.savez(data, x=array, answer0=right)
    return SeedFile(name, model, data)


@pytest.mark.frameworks
def test_who_contradicts_a_known_answer_is_a_finding_even_if_all_do(tmp_path: Path) -> None:
    """Three seeds: a right answer, a wrong one, and one that no formula of ours knows."""
    x = np.array([[-1.0, 2.0, 0.5]], "float32")
    drawn = np.array([[0.25, 0.5, 0.75]], "float32")
    seeds = (
        example(tmp_path, "Relu", x, np.maximum(x, 0), "right"),
        example(tmp_path, "Sin", x, np.cos(x), "wrong"),
        example(tmp_path, "HammingWindow", np.int64(3), drawn[0], "open"),
    )
    targets = tuple(BUILT_IN[name] for name in ("onnxruntime", "onnx-reference"))
    job = FuzzJob(seeds, targets, strategy="random", budget=Budget(mutants=0), confirm=0)
    result = start(job, tmp_path / "out")
    titles = sorted(f"{f['triage']}: {f['title']}" for f in result["findings"])
    assert titles == [
        f"unknown: {name} contradicts the known answer of open: 3 of 3 values are others"
        for name in ("onnx-reference", "onnxruntime")
    ]


@pytest.mark.frameworks
def test_one_target_that_leaves_a_known_answer_is_accused(tmp_path: Path) -> None:
    """Two of one library have no majority; the answer, and our formula, decide."""
    plant = tmp_path / "plant.py"
    plant.write_text(
        "from onnx.reference.ops.op_relu import Relu\nRelu._run = lambda self, x: (x + 1,)\n"
    )
    bad = replace(BUILT_IN["onnx-reference"], name="bad", setup=plant)
    x = np.array([[-1.0, 2.0]], "float32")
    job = FuzzJob(
        (example(tmp_path, "Relu", x, np.maximum(x, 0)),),
        (bad, replace(bad, name="worse")),
        strategy="random",
        budget=Budget(mutants=0),
        confirm=0,
    )
    result = start(job, tmp_path / "out")
    told = {f["accused"]: (f["triage"], f["title"]) for f in result["findings"]}
    assert told == {
        "bad": ("bug", "bad contradicts the known answer of seed: 1 of 2 values are others")
    }


@pytest.mark.frameworks
def test_a_model_of_the_zoo_is_exported_and_breeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "zoo"
    assert main(["zoo", "build", "onnx:tiny-vector", "--out", str(out), "--quiet"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["tiny-vector.npz", "tiny-vector.onnx"]
    campaign = ["fuzz", "onnx:tiny-vector", "--targets", "onnxruntime,onnx-reference", "--quiet"]
    assert main([*campaign, "--budget", "8", "--out", str(tmp_path / "fuzz")]) in (0, 1)
    result = json.loads((tmp_path / "fuzz" / "result.json").read_text(encoding="utf-8"))
    assert result["tested"] == 8
    (model,) = (tmp_path / "cache").rglob("tiny-vector.onnx")
    assert [item.name for item in onnx.load(str(model)).graph.input] == ["x0"]
