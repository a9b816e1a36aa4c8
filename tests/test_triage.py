"""Verdicts: minimise, decide, prove, confirm; each stage by itself, and all on fake targets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import fake
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import run_check
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.parts import SHORT
from outvote.core.specimen import Specimen, fitted
from outvote.core.states import State
from outvote.core.target import Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.answer import first_of
from outvote.findings.finding import Finding
from outvote.judge.compare import Settings
from outvote.judge.observation import Observation
from outvote.judge.rounding import Gap, Rounding
from outvote.judge.vote import Vote
from outvote.run.local import LocalPool
from outvote.run.process import Limits
from outvote.triage.examine import Examiner
from outvote.triage.minimise import minimise
from outvote.triage.plain import PATTERNS, expression


def check_with(model: Path, data: Path, *targets: Target, **more: Any) -> Checked:
    limits = Limits(start_seconds=20, silence_seconds=2)
    return run_check(Job(model, targets, data=data, limits=limits, **more))


def only(checked: Checked) -> Finding:
    (finding,) = checked.findings
    return finding


# Who is right.


@pytest.mark.slow
def test_the_reference_decides_between_two(fake_model: Path, fake_data: Path) -> None:
    finding = only(check_with(fake_model, fake_data, fake("a"), fake("b", "lie:d2")))
    assert (finding.accused, finding.triage) == ("b", "bug")
    assert "independent NumPy computation in float64" in finding.reason
    assert finding.proof is not None
    assert finding.proof.errors["a"] < 1e-6 < finding.proof.errors["b"]


@pytest.mark.slow
def test_a_majority_that_shares_a_wrong_formula_is_accused(
    fake_model: Path, fake_data: Path
) -> None:
    targets = (fake("a", "lie:d2"), fake("b", "lie:d2"), fake("honest"))
    finding = only(check_with(fake_model, fake_data, *targets))
    assert finding.triage == "bug"
    assert finding.accused in ("a", "b")
    assert set(finding.targets) == {"a", "b"}
    assert "the majority is wrong" in finding.reason


@pytest.mark.slow
def test_two_against_two_are_one_finding_and_the_exact_result_says_whose(
    fake_model: Path, fake_data: Path
) -> None:
    targets = (fake("a"), fake("b"), fake("c", "lie:d2"), fake("d", "lie:d2"))
    finding = only(check_with(fake_model, fake_data, *targets))
    assert finding.triage == "bug"
    assert finding.accused in ("c", "d")
    assert set(finding.targets) == {"c", "d"}


def test_without_a_reference_two_are_undecided(tmp_path: Path, fake_data: Path) -> None:
    """`Scale` is a kind of the fake target alone: no formula is known for it."""
    model = tmp_path / "scale.json"
    model.write_text(
        '{"class_name": "FakeModel", "input": [null, 6], "output": [null, 6], "layers": '
        '[{"name": "s", "kind": "Scale", "config": {"by": 2.0}, "inputs": ["x"], "weights": []}]}'
    )
    np.savez(tmp_path / "x.npz", x=np.ones((2, 6), np.float32))
    finding = only(check_with(model, tmp_path / "x.npz", fake("a"), fake("b", "lie:s")))
    assert (finding.accused, finding.triage) == (None, "unknown")


@pytest.mark.slow
def test_a_finding_is_confirmed_in_fresh_workers(fake_model: Path, fake_data: Path) -> None:
    targets = (fake("a"), fake("b", "lie:d2"), fake("c"))
    finding = only(check_with(fake_model, fake_data, *targets, confirm=2))
    assert finding.proof is not None
    assert (finding.proof.shown, finding.proof.tried) == (2, 2)
    assert finding.triage == "bug"


@pytest.mark.slow
def test_the_finding_is_small_and_says_from_what(fake_model: Path, fake_data: Path) -> None:
    finding = only(check_with(fake_model, fake_data, fake("a"), fake("b", "lie:d2"), fake("c")))
    proof = finding.proof
    assert proof is not None
    assert len(proof.specimen.model.layers) == 1
    assert proof.specimen.count == 1
    # Weights and inputs have become numbers that one can type.
    assert all(expression(array) is not None for array in proof.specimen.inputs)


@pytest.mark.slow
def test_what_fails_on_several_instances_alone_is_shown_on_two(
    fake_model: Path, fake_data: Path
) -> None:
    finding = only(check_with(fake_model, fake_data, fake("a"), fake("b", "crowd:d2"), fake("c")))
    assert (finding.kind, finding.accused, finding.triage) == ("crash", "b", "bug")
    assert finding.proof is not None
    assert finding.proof.specimen.count == 2


def test_where_a_single_witness_leads_to_another_fault_two_are_asked(fake_model: Path) -> None:
    """Of one instance `a` is wrong and of several `b`: what is told must stay about `b`."""
    targets = {one.name: one for one in (fake("a", "early:r"), fake("b", "late:r"), fake("c"))}
    model = one_relu()
    x = np.ones((4, 3), np.float32)
    met = Finding("inconsistency", "t", "r", ("b",), "b", "bug", "keras", model.layers[0])
    with LocalPool(list(targets.values())) as pool:
        told = Examiner(pool, targets, Settings()).examine(met.but(library="b"), model, [x])
    assert (told.accused, told.triage, told.targets) == ("b", "bug", ("b",))
    assert told.proof is not None
    assert told.proof.specimen.count == 2


@pytest.mark.parametrize(("kind", "witness"), [("Conv2D", "torch"), ("Dense", "numpy")])
def test_who_borrows_what_compiles_is_not_the_first_witness(kind: str, witness: str) -> None:
    """NumPy's convolutions are JAX's, which are compiled for every shape."""
    targets = {name: BUILT_IN[name] for name in ("numpy", "jax", "torch", "tensorflow")}
    vote = Vote((("tensorflow",), ("numpy", "jax", "torch")), ("numpy", "jax", "torch"), "")
    seen = Observation({}, {}, "inconsistency", Gap(1.0, 0.1), Rounding(()), vote)
    layer = replace(one_relu().layers[0], kind=kind)
    specimen = Specimen(replace(one_relu(), layers=(layer,)), (np.ones((1, 3)),))
    with LocalPool([]) as pool:
        few, all_of_them = Examiner(pool, targets, Settings())._witnesses(
            ["tensorflow"], seen, specimen
        )
    assert few == ["tensorflow", witness]
    assert all_of_them[:2] == few
    assert len(all_of_them) == 3


def one_relu() -> Model:
    item, layer = Input("x", (None, 3), "float32", 0), Layer("r", "ReLU", {}, [{REF: ["x", 0]}])
    return Model("m", (item,), (layer,), (Ref("r"),), "keras")


# Minimising, with a predicate instead of workers.


@dataclass(frozen=True)
class NoKeras:
    """Tools for models whose layers need nothing: what fits stays, weights are never rebuilt."""

    blobs: BlobStore

    def rebuilt(self, specimen: Specimen) -> Specimen | None:
        return specimen

    def defaults(self, specimen: Specimen) -> Mapping[str, Mapping[str, Any]]:
        return {layer.name: {"rate": 0, "mode": "a"} for layer in specimen.model.layers}

    def tensors(self, specimen: Specimen, names: Sequence[str]) -> dict[str, list[State]]:
        return {name: [State(np.ones((specimen.count, 3), np.float32))] for name in names}


def chain(kinds: Sequence[str], **config: Any) -> Model:
    layers, last = [], "x"
    for number, kind in enumerate(kinds):
        name = f"l{number}"
        layers.append(Layer(name, kind, {"name": name, **config}, args=[{REF: [last, 0]}]))
        last = name
    return Model("m", (Input("x", (None, 3), "float32"),), tuple(layers), (Ref(last),), "keras")


def test_a_hundred_layers_shrink_to_the_two_that_matter(tmp_path: Path) -> None:
    kinds = ["Fine"] * 60 + ["Bad", "Worse"] + ["Fine"] * 38
    specimen = Specimen(chain(kinds), (np.random.default_rng(0).normal(size=(8, 3)),))
    asked = 0

    def shows(candidate: Specimen) -> bool:
        nonlocal asked
        asked += 1
        found = [layer.kind for layer in candidate.model.layers]
        return "Bad" in found and "Worse" in found

    small = minimise(specimen, shows, NoKeras(BlobStore(tmp_path)), 60)
    assert [layer.kind for layer in small.specimen.model.layers] == ["Bad", "Worse"]
    assert small.specimen.count == 1
    assert small.complete
    assert asked < 200


def test_parameters_that_do_not_matter_go_back_to_their_defaults(tmp_path: Path) -> None:
    model = chain(["Bad"], rate=7, mode="b", size=9, dtype="float16")
    specimen = Specimen(model, (np.zeros((1, 3), np.float32),))

    def shows(candidate: Specimen) -> bool:
        config = candidate.last.config
        return bool(config["mode"] == "b" and config["size"] >= 3)

    small = minimise(specimen, shows, NoKeras(BlobStore(tmp_path)), 60).specimen
    plain = {"name": "l0", "rate": 0, "mode": "b", "size": 3, "dtype": "float32"}
    assert dict(small.last.config) == plain


def test_nothing_smaller_leaves_it_as_it_is(tmp_path: Path) -> None:
    specimen = Specimen(chain(["A", "B"]), (np.full((1, 3), 0.123456),))
    small = minimise(specimen, lambda candidate: False, NoKeras(BlobStore(tmp_path)), 60)
    assert small.specimen is specimen
    assert not small.smaller


def test_infinity_and_nan_stay_when_the_rest_becomes_plain(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(2, 9)).astype(np.float32)
    values[1, 6], values[1, 7] = np.inf, np.nan

    def shows(candidate: Specimen) -> bool:
        return bool(np.isinf(candidate.inputs[0]).any())

    small = minimise(Specimen(chain(["Bad"]), (values,)), shows, NoKeras(BlobStore(tmp_path)), 60)
    assert small.specimen.inputs[0].tolist() == [[np.inf]]


def test_the_time_limit_is_kept_and_said(tmp_path: Path) -> None:
    specimen = Specimen(chain(["A"] * 50), (np.full((4, 3), 0.5),))
    small = minimise(specimen, lambda candidate: False, NoKeras(BlobStore(tmp_path)), 0.0)
    assert not small.complete


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_weights_are_fitted_to_any_shape(old: list[int], new: list[int]) -> None:
    array = np.arange(int(np.prod(old)), dtype=np.float32).reshape(old)
    found = fitted(array, new)
    assert found.shape == tuple(new)
    assert set(found.ravel()) <= set(array.ravel())


# Numbers that one can type.


@settings(max_examples=60)
@given(
    st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=12),
    st.sampled_from(["float32", "float64", "float16"]),
)
def test_an_expression_gives_the_array_again(values: list[float], dtype: str) -> None:
    with np.errstate(over="ignore"):
        array = np.array(values, dtype)
    text = expression(array)
    assert text is not None
    again = eval(text, {"np": np})
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize("shape", [(2,), (1, 3), (2, 2, 2)])
@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_patterns_are_written_as_their_expressions(shape: tuple[int, ...], number: int) -> None:
    array = PATTERNS[number][1](shape).astype("float32")
    text = expression(array)
    assert text is not None
    np.testing.assert_array_equal(eval(text, {"np": np}), array)


def test_an_array_too_long_to_read_is_not_written_out() -> None:
    assert expression(np.random.default_rng(0).normal(size=1000)) is None


# One cause, one finding.


def examined(kind: str, matter: Mapping[str, Any], **config: Any) -> Finding:
    from outvote.findings.finding import Proof

    model = chain([kind], **config)
    seen = Observation({}, {}, "inconsistency", Gap(1.0, 0.1), Rounding(()), Vote((), (), ""))
    specimen = Specimen(model, (np.zeros((1, 3)),))
    proof = Proof(specimen, seen, matter, {"size": 1, "padding": "valid"}, 1, 1, 0.0, True)
    return Finding(
        "inconsistency",
        "t",
        "r",
        ("torch",),
        "torch",
        "bug",
        "keras",
        model.layers[0],
        library="torch",
        proof=proof,
    )


def test_the_fingerprint_is_of_the_cause() -> None:
    first = examined("Pool", {"padding": "same", "size": 3}, padding="same", size=3)
    bigger = examined("Pool", {"padding": "same", "size": 5}, padding="same", size=5)
    other = examined("Pool", {"padding": "causal", "size": 3}, padding="causal", size=3)
    assert first.fingerprint == bigger.fingerprint
    assert first.fingerprint != other.fingerprint
    assert first.fingerprint != examined("Conv", {"padding": "same", "size": 3}).fingerprint


def test_a_cause_is_the_same_in_whatever_layer_it_was_met() -> None:
    """An activation is wrong by itself, not in every layer that uses it."""
    alone = examined("Activation", {"activation": "mish"}, activation="mish")
    dense = alone.but(layer=Layer("d", "Dense", {"activation": "mish"}))
    assert alone.fingerprint == dense.fingerprint
    raw = Finding(
        "inconsistency", "t", "r", ("torch",), "torch", "bug", "keras", dense.layer, library="torch"
    )
    assert alone.covers(raw)
    assert not alone.covers(raw.but(layer=Layer("d", "Dense", {"activation": "relu"})))


def test_a_known_cause_covers_further_layers_that_have_what_matters() -> None:
    known = examined("Pool", {"padding": "same"}, padding="same", size=3)
    raw = examined("Pool", {}, padding="same", size=7)
    assert known.covers(raw.but(proof=None))
    assert not known.covers(examined("Pool", {}, padding="valid", size=7).but(proof=None))
    assert not known.covers(replace(raw, kind="nan", proof=None))
    assert not known.covers(replace(raw, library="jax", proof=None))


def test_a_cause_is_told_apart_by_what_the_layer_reads_and_by_what_it_complains_of() -> None:
    def fails(dtype: str, count: int, message: str) -> Finding:
        found = examined("Pool", {})
        assert found.proof is not None
        inputs = (np.zeros((count, 3), dtype),)
        specimen = replace(found.proof.specimen, inputs=inputs)
        title = f"torch fails in Pool layer 'p_1': {message}"
        return found.but(kind="crash", title=title, proof=replace(found.proof, specimen=specimen))

    floats = fails("float32", 1, "ValueError: rank 3")
    ints, none = fails("int32", 1, "ValueError: rank 3"), fails("float32", 0, "ValueError: rank 3")
    assert len({f.fingerprint for f in (floats, ints, none)}) == 3
    assert floats.fingerprint == fails("float64", 2, "ValueError: another").fingerprint
    assert floats.covers(floats.but(proof=None, title="torch fails in 'p_7': ValueError: rank 5"))
    assert not floats.covers(floats.but(proof=None, title="torch fails in 'p_7': KeyError: x"))


@pytest.mark.parametrize("name", ["keras", "onnx"])
def test_listed_differences_name_layers_reasons_and_sources(name: str) -> None:
    from outvote.triage.differences import differences_of

    assert differences_of(name)
    for entry in differences_of(name):
        assert entry.layers
        assert entry.link.startswith("https://")
        assert set(entry.kinds) <= {"inconsistency", "nan", "shape"}
        assert not entry.reason.endswith(".")


# The proof, on real frameworks.


@pytest.mark.frameworks
def test_a_listed_difference_needs_no_majority(real_pool: Any, keras_file: Any) -> None:
    from outvote.commands.check.run import check_in

    path = keras_file(
        """
x = keras.Input((6, 8, 3))
model = keras.Model(x, layers.Resizing(9, 5, interpolation="bicubic")(x))
"""
    )
    targets = tuple(real_pool.targets[name] for name in ("tensorflow", "torch"))
    finding = only(check_in(real_pool, Job(path, targets, count=2)))
    assert (finding.accused, finding.triage) == (None, "difference"), finding.reason
    assert "different cubic kernels" in finding.reason


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("wide", "ran"),
    [("float64", ["tensorflow", "torch"]), ("float32", ["openvino", "tensorflow", "torch"])],
)
def test_who_computes_float64_in_float32_is_no_witness_in_float64(
    wide: str, ran: list[str], real_pool: Any, keras_file: Any
) -> None:
    from outvote.commands.check.run import check_in

    path = keras_file(
        f"""
x = keras.Input((5,), dtype="{wide}")
model = keras.Model(x, layers.Activation("tanh", dtype="{wide}")(x))
"""
    )
    targets = tuple(real_pool.targets[name] for name in ("torch", "tensorflow", "openvino"))
    checked = check_in(real_pool, Job(path, targets, count=4))
    assert sorted(name for name, run in checked.runs.items() if run.ok) == ran
    assert not checked.findings


@pytest.mark.frameworks
def test_lost_digits_of_a_layer_that_will_not_compute_in_float64_are_rounding(
    real_pool: Any, keras_file: Any
) -> None:
    """Keras normalises in float32 whatever it is asked for: 31.6 - 31.6 - 0.05, of one number."""
    from outvote.commands.check.run import check_in

    path = keras_file(
        """
x = keras.Input((1,))
model = keras.Model(x, layers.LayerNormalization()(x))
model.layers[-1].set_weights([np.float32([1.0]), np.float32([-0.05])])
"""
    )
    targets = tuple(real_pool.targets[name] for name in ("tensorflow", "torch", "numpy"))
    data = {"x": np.ones((1, 1), "float32")}
    checked = check_in(real_pool, Job(path, targets, data=data))
    assert {f.triage for f in checked.findings} == {"precision"}, checked.findings


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("layer", "number"),
    [
        ("layers.SimpleRNN(1, activation='elu')", -1e-3),  # exp(x) - 1
        ("layers.Dense(1, activation='tanh_shrink')", 0.03),  # x - tanh(x)
    ],
)
def test_digits_that_cancel_are_rounding(
    layer: str, number: float, real_pool: Any, keras_file: Any
) -> None:
    from outvote.commands.check.run import check_in

    path = keras_file(
        f"""
x = keras.Input((3, 1))
model = keras.Model(x, {layer}(x))
for v in model.weights:
    v.assign(np.full(v.shape, 0.7, "float32"))
model.layers[-1].set_weights([w * (w.ndim > 1) for w in model.layers[-1].get_weights()])
"""
    )
    targets = tuple(real_pool.targets[name] for name in ("tensorflow", "torch", "numpy", "jax"))
    data = {"x": np.array([[[1.0], [1.3], [0.9]]], "float32") * np.float32(number)}
    checked = check_in(real_pool, Job(path, targets, data=data))
    apart = [found.maximum for pair in checked.comparisons for found in pair.measured]
    assert max(apart) > 0
    assert {f.triage for f in checked.findings} <= {"precision"}, checked.findings


@pytest.mark.frameworks
def test_a_live_bug_becomes_a_short_script(real_pool: Any, keras_file: Any, tmp_path: Path) -> None:
    """torch's average pooling with padding "same" divides by the wrong number (Keras 3.15.1)."""
    from outvote.commands.check.run import check_in

    path = keras_file(
        """
x = keras.Input((6, 8, 3))
y = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
y = layers.AveragePooling2D(3, strides=2, padding="same", name="pool")(y)
model = keras.Model(x, layers.Dense(3)(layers.Flatten()(y)))
"""
    )
    targets = tuple(real_pool.targets[name] for name in ("tensorflow", "torch"))
    checked = check_in(real_pool, Job(path, targets, count=3), out=tmp_path)
    finding = only(checked)
    assert (finding.accused, finding.triage) == ("torch", "bug"), finding.reason
    assert finding.proof is not None
    assert finding.proof.matter == {"padding": "same"}
    (first,) = finding.proof.causes  # no other parameter matters, so no other was tried
    assert (first.parameter, first.value, first.cured_by) == ("padding", "same", ("valid",))
    assert finding.parameters == {"padding": "same"}
    assert finding.proof.specimen.numbers < 20
    (repro,) = checked.repros.values()
    text = (tmp_path / repro).read_text()
    assert len(text.splitlines()) <= 24
    assert "outvote" not in text
    done = subprocess.run(
        [sys.executable, tmp_path / repro], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    told = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    assert told == {"tensorflow": "ok:", "torch": "WRONG:"}
    report = (tmp_path / repro).with_name("report.md").read_text()
    assert "padding='same'" in report
    at_a_glance = report.split("```python\n")[1].split("```")[0]  # before all the rest
    assert report.index(at_a_glance) < report.index("- kind: ")
    assert len(at_a_glance.splitlines()) <= SHORT
    done = subprocess.run([sys.executable, "-c", at_a_glance], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wrong = finding.proof.observed.outputs["torch"].arrays[0]
    assert f"# torch gives {first_of(wrong)}" in at_a_glance
    assert f"{wrong.ravel()[0]:.4f}" in done.stdout


def test_weights_of_a_rebuilt_layer_keep_their_numbers(tmp_path: Path) -> None:
    from outvote.core.specimen import weights_for

    blobs = BlobStore(tmp_path)
    kernel = blobs.put(np.arange(6, dtype=np.float32).reshape(2, 3))
    layer = Layer("d", "Dense", {}, weights=(Weight("kernel", kernel, (2, 3)),))
    wanted = [("kernel", [2, 2], "float32"), ("bias", [2], "float32")]
    found = weights_for(layer, wanted, blobs)
    np.testing.assert_array_equal(blobs.get(found[0].digest), [[0, 1], [3, 4]])
    np.testing.assert_array_equal(blobs.get(found[1].digest), [0, 0])
