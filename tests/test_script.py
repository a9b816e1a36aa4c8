"""repro.py: whatever a model calls its layers and inputs stays text, and the script runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.cuts import ended_at, owned
from outvote.core.dtypes import asks_for
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.outputs import Outputs
from outvote.core.parts import SHORT
from outvote.core.source import filled, keywords, literal, one_line
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.keras import script
from outvote.dialects.keras.script import can_prove, written_out
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.finding import Finding, Proof
from outvote.judge.observation import Observation
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.vote import Vote
from outvote.localize.whole_graph import prefix
from outvote.run.pool import Pool

KERAS = {"module": "keras.layers"}
RNG = np.random.default_rng(3)
CODE = '"] if __import__("pathlib").Path("canary").touch() else np.zeros(1)["'
HOSTILE = (
    *("file", "class", "np", "call", "my-input", "lambda", "x0", "keras", "", " ", "allow_pickle"),
    *(
        CODE,
        "'''\n\"\"\"\nimport os\n",
        "\\N{bad}\\x",
        "@BODY@",
        "@EXPECTED@",
        "{{7*7}}",
        "\r\n#",
        "\x1b]0;t\x07",
    ),
    *("\u2028print(1)", "\u202egnp.exe", "\\", '"', "a/../../b", "None", "ä", "\ud800"),
)
TARGETS = {name: replace(BUILT_IN[name], name=name) for name in ("numpy",)}


def blob(blobs: BlobStore, name: str, array: Array) -> Weight:
    return Weight(name, blobs.put(array), array.shape)


def dense(blobs: BlobStore, name: str, read: str, width: int, **more: Any) -> Layer:
    """Weights of more numbers than a script writes out."""
    kernel = RNG.normal(size=(width, width)).astype("float32")
    weights = (blob(blobs, "kernel", kernel), blob(blobs, "bias", np.ones(width, "float32")))
    config = {"name": name, "units": width, "activation": "linear", "use_bias": True}
    return Layer(
        name,
        "Dense",
        config,
        [{REF: [read, 0]}],
        weights=weights,
        origin=KERAS,
        **more,
    )


def finding_of(model: Model, inputs: list[Array], title: str, expected: Array) -> Finding:
    outputs = {"numpy": Outputs((expected,), (expected.dtype.name,))}
    seen = Observation(
        outputs, {}, "inconsistency", Gap(1.0, 1e-5), Rounding(()), Vote((), (), title)
    )
    proof = Proof(Specimen(model, tuple(inputs)), seen, {}, {}, 1, 1, 0.0, True)
    return Finding("inconsistency", title, "", ("numpy",), "numpy", "bug", "keras", proof=proof)


def written(finding: Finding, blobs: BlobStore, folder: Path) -> Path:
    assert can_prove(finding, TARGETS.values())
    assert finding.proof is not None
    text = written_out(finding, finding.proof, TARGETS, {}, blobs, folder)
    (folder / "repro.py").write_text(text, encoding="utf-8")
    return folder / "repro.py"


def calls(path: Path) -> set[str]:
    """What a script calls, as text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(name: str, tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    other = f"{name}2"

    def scripted(folder: str, first: str, layer: str) -> Path:
        (tmp_path / folder).mkdir()
        inputs = (Input(first, (None, 15), "float32"),)
        model = Model("m", inputs, (dense(blobs, layer, first, 15),), (Ref(layer),), "keras")
        x = RNG.normal(size=(14, 15)).astype("float32")
        finding = finding_of(model, [x], f"differs in layer {layer!r} {layer}", x)
        return written(finding, blobs, tmp_path / folder)

    hostile, plain = scripted("hostile", name, other), scripted("plain", "input", "layer")
    assert calls(hostile) == calls(plain)
    with np.load(hostile.with_name("arrays.npz")) as file:
        assert file.files == ["array0", "array1", "array2"]
    defined = {
        node.name
        for node in ast.walk(ast.parse(hostile.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert defined == {"run"}


@pytest.mark.frameworks
def test_the_script_of_a_hostile_model_runs(tmp_path: Path) -> None:
    """One model of all hostile names, one layer reading the other; `canary` is never made."""
    blobs = BlobStore(tmp_path / "blobs")
    names = [name for name in HOSTILE if name != "\ud800"]
    inputs = tuple(Input(name, (None, 15), "float32") for name in names[:3])
    join = Layer(
        "join", "Add", {"name": "join"}, [[{REF: [i.name, 0]} for i in inputs]],
        origin=KERAS,
    )  # fmt: skip
    layers = [join]
    for name in names[3:]:
        layers.append(dense(blobs, name, layers[-1].name, 15))
    model = Model("m", inputs, tuple(layers), (Ref(layers[-1].name),), "keras")
    given = [RNG.normal(size=(14, 15)).astype("float32") for _ in inputs]
    value = sum(given[1:], given[0]).astype("float64")
    for layer in layers[1:]:
        kernel, bias = (blobs.get(weight.digest) for weight in layer.weights)
        value = value @ kernel + bias
    path = written(finding_of(model, given, CODE, value.astype("float32")), blobs, tmp_path)
    done = subprocess.run(
        [sys.executable, path.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("numpy")
    assert not (tmp_path / "canary").exists()


def test_a_call_by_hostile_keywords_and_kinds(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    layer = Layer(
        "l",
        "ReLU",
        {"max_value": float("inf"), "a=evil()": {"class_name": "X(evil())", "config": {}}},
        [{REF: ["x", 0]}],
        {"mask=evil()": [1.0, float("nan"), {"$tuple": [{REF: ["x", 0]}, 1]}]},
        origin=KERAS,
    )  # fmt: skip
    x = np.zeros((1, 2), "float32")
    model = Model("m", (Input("x", (None, 2), "float32"),), (layer,), (Ref("l"),), "keras")
    path = written(finding_of(model, [x], "t", x), blobs, tmp_path)
    assert not any("evil" in call for call in calls(path))
    odd = finding_of(replace(model, layers=(replace(layer, kind="ReLU(evil())"),)), [x], "t", x)
    assert not can_prove(odd, TARGETS.values())


def test_an_operation_is_not_taken_for_the_layer_of_its_name(tmp_path: Path) -> None:
    """`h + h` is an Add, and keras.layers.Add is another thing: it takes a list."""
    layer = Layer(
        "a", "Add", {"name": "a"}, [{REF: ["x", 0]}] * 2, origin={"module": "keras.src.ops.numpy"}
    )
    x = np.zeros((1, 2), "float32")
    model = Model("m", (Input("x", (None, 2), "float32"),), (layer,), (Ref("a"),), "keras")
    text = written(finding_of(model, [x], "t", x), BlobStore(tmp_path / "b"), tmp_path).read_text()
    assert "keras.layers.Add" not in text
    assert "'keras.src.ops.numpy'" in text


def shared(blobs: BlobStore) -> Model:
    """Three calls of one object: of x, of the first call, of y."""
    first = dense(blobs, "first", "x", 3)
    calls = [
        first,
        replace(first, name="again", args=[{REF: ["first", 0]}], shares="first"),
        replace(first, name="third", args=[{REF: ["y", 0]}], shares="first"),
        replace(first, name="fourth", args=[{REF: ["third", 0]}], shares="first"),
    ]
    inputs = (Input("x", (None, 3), "float32"), Input("y", (None, 3), "float32"))
    return Model("m", inputs, tuple(calls), (Ref("again"), Ref("fourth")), "keras")


def test_what_is_left_of_a_shared_layer_owns_its_weights(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    model = shared(blobs)
    left = prefix(model, 3)
    assert [(layer.name, layer.shares) for layer in left.layers] == [
        ("third", None),
        ("fourth", "third"),
    ]
    assert owned(model.layers) == model.layers
    ends = ended_at(model, Ref("fourth"))
    assert [(layer.name, layer.shares) for layer in ends.layers] == [
        ("third", None),
        ("fourth", "third"),
    ]
    x = np.zeros((1, 3), "float32")
    for cut in (left, replace(model, layers=model.layers[2:], outputs=(Ref("fourth"),))):
        found = finding_of(cut, [x, x], "t", x)
        (tmp_path / cut.layers[0].name).mkdir(exist_ok=True)
        text = written(found, blobs, tmp_path / cut.layers[0].name).read_text()
        assert text.count("set_weights") == 1, text
        assert text.count("keras.layers.Dense(") == 1


def test_a_stateful_layer_is_cleared_before_it_counts(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    layer = dense(blobs, "d", "x", 3)
    inner = {"class_name": "LSTM", "module": "keras.layers", "config": {"stateful": True}}
    wrapped = replace(layer, kind="TimeDistributed", config={"layer": inner})
    x = np.zeros((1, 3), "float32")
    for made, cleared in ((wrapped, True), (layer, False)):
        model = Model("m", (Input("x", (None, 3), "float32"),), (made,), (Ref("d"),), "keras")
        path = written(finding_of(model, [x], "t", x), blobs, tmp_path)
        assert ("getattr(part, 'states'" in path.read_text()) is cleared
        ast.parse(path.read_text())


@pytest.mark.parametrize(
    ("where", "wide"),
    [
        ({}, False),
        ({"config": {"name": "float64"}}, False),
        ({"config": {"vocabulary": ["float64"]}}, False),
        ({"config": {"dtype": "float64"}}, True),
        ({"config": {"dtype": {"class_name": "DTypePolicy", "config": {"name": "float64"}}}}, True),
        ({"config": {"layer": {"config": {"name": "float64"}}}}, False),
        ({"config": {"layer": {"config": {"output_dtype": "float64"}}}}, True),
        ({"args": [{REF: ["float64", 0]}, "float64"]}, True),
        ({"kwargs": {"dtype": "float64"}}, True),
        ({"kwargs": {"axis": 1}}, False),
    ],
)
def test_float64_is_told_by_types_and_not_by_names(where: dict[str, Any], wide: bool) -> None:
    parts = {"config": {}, "args": [{REF: ["float64", 0]}], **where}
    layer = Layer("float64_2", "Dense", **parts)
    model = Model(
        "float64", (Input("float64", (None,), "float32"),), (layer,), (Ref("float64_2"),), "keras"
    )
    assert asks_for(model, "float64") is wide


def test_source_of_untrusted_text(tmp_path: Path) -> None:
    values = {"a": [1, (2,), float("nan")], "b": (float("-inf"), None, True, "x'\"\n"), "c": {}}
    read = eval(literal(values), {})
    assert repr(read) == repr(values)
    assert keywords({"a": "1", "class": "2", "b c": "3"}) == ["a=1", "**{'class': 2, 'b c': 3}"]
    assert one_line('a"""\n\\x \u202e\ud800') == "a''' /x ��"
    template = tmp_path / "t.txt"
    template.write_text("@A@ and @B@")
    assert filled(template, {"A": "@B@", "B": "@A@"}) == "@B@ and @A@"


def test_targets_without_plain_keras_prove_nothing(tmp_path: Path) -> None:
    x = np.zeros((1, 3), "float32")
    layer = dense(BlobStore(tmp_path), "d", "x", 3)
    model = Model("m", (Input("x", (None, 3), "float32"),), (layer,), (Ref("d"),), "keras")
    finding = finding_of(model, [x], "t", x)
    classic = Target("c", dialect="keras", worker="keras2", library="c")
    assert can_prove(finding, TARGETS.values())
    assert not can_prove(finding, [classic])


def test_what_openvino_does_is_shown_at_a_glance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a graph, which is all that it runs."""
    monkeypatch.setattr(script, "_defaults", lambda *asked: {})
    layer = Layer("l", "ReLU", {"name": "l"}, [{REF: ["x", 0]}], origin=KERAS)
    model = Model("m", (Input("x", (None, 1), "float32"),), (layer,), (Ref("l"),), "keras")
    wrong = Outputs((np.zeros((1, 1), "float32"),), ("float32",))
    right = np.array([[np.nan]], "float32")
    finding = finding_of(model, [right], "openvino drops NaN", right)
    assert finding.proof is not None
    seen = replace(finding.proof.observed, outputs={"openvino": wrong})
    proof = replace(finding.proof, observed=seen, expected=Outputs((right,), ("float32",)))
    finding = finding.but(accused="openvino", proof=proof)
    targets = {"openvino": BUILT_IN["openvino"]}
    text = script.short(finding, targets, cast(Pool, SimpleNamespace(blobs=BlobStore(tmp_path))))
    assert text is not None
    assert len(text.splitlines()) <= SHORT
    compile(text, "short", "exec")
    assert "ov.compile_model" in text
    assert "call(x0))" not in text


def test_where_nobody_is_accused_who_parts_is_shown_beside_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who fails or gives another thing: a maintainer runs it, and reads what another says."""
    monkeypatch.setattr(script, "_defaults", lambda *asked: {})
    layer = Layer("l", "ReLU", {"name": "l"}, [{REF: ["x", 0]}], origin=KERAS)
    model = Model("m", (Input("x", (None, 1), "float32"),), (layer,), (Ref("l"),), "keras")
    one, other = (Outputs((np.full((1, 1), n, "float32"),), ("float32",)) for n in (1, 2))
    finding = finding_of(model, [one.arrays[0]], "they differ", one.arrays[0])
    assert finding.proof is not None
    targets = {name: BUILT_IN[name] for name in ("jax", "torch", "numpy")}
    pool = cast(Pool, SimpleNamespace(blobs=BlobStore(tmp_path)))

    def shown(outputs: dict[str, Outputs], failures: dict[str, Run[Any]]) -> list[str]:
        assert finding.proof is not None
        seen = replace(finding.proof.observed, outputs=outputs, failures=failures)
        proof = replace(finding.proof, observed=seen)
        text = script.short(finding.but(accused=None, proof=proof), targets, pool)
        assert text is not None
        return text.splitlines()

    first, *_, gives, others = shown({"jax": one, "numpy": one, "torch": other}, {})
    assert "'torch'" in first
    assert gives == "# torch gives float32 (1, 1) 2.0"
    assert others == "# jax gives float32 (1, 1) 1.0"
    fails = Run[Any]("torch", Outcome.ERROR, message="no such size")
    *_, gives, others = shown({"jax": one}, {"torch": fails})
    assert (gives, others) == ("# torch fails: no such size", "# jax gives float32 (1, 1) 1.0")
