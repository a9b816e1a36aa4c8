"""What the driver knows of Keras by name: parameters, types, logits, files, classic versions."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.core.blobs import BlobStore
from outvote.core.dtypes import asks_for
from outvote.core.errors import UsageError
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.specimen import Specimen
from outvote.core.target import Target
from outvote.dialects.keras import files, layers, lesson, neurons
from outvote.dialects.keras.classic import CLASSIC, classic_of, is_classic, keras_of
from outvote.dialects.keras.logits import logits_apart
from outvote.dialects.keras.recipes import RECIPES, lend_openblas
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.keras.widen import float64_of


def ref(name: str, index: int = 0) -> dict[str, Any]:
    return {REF: [name, index]}


def layer(name: str, kind: str, reads: str, **config: Any) -> Layer:
    return Layer(name, kind, {"name": name, **config}, [ref(reads)])


def chain(*made: Layer, outputs: tuple[Ref, ...] | None = None, dtype: str = "float32") -> Model:
    inputs = (Input("x", (None, 4), dtype),)
    return Model("m", inputs, made, outputs or (Ref(made[-1].name),), "keras")


# Layers.


@pytest.mark.parametrize(
    ("told", "name"),
    [
        (None, None),
        ("float16", "float16"),
        ({"class_name": "DTypePolicy", "config": {"name": "mixed_float16"}}, "mixed_float16"),
        ({"class_name": "DTypePolicy", "config": {}}, None),
        ({}, None),
    ],
)
def test_a_type_is_told_as_such_or_as_a_policy(told: Any, name: str | None) -> None:
    assert layers.dtype(layer("d", "Dense", "x", dtype=told)) == name


def test_parameters_that_cannot_matter_are_left_out() -> None:
    made = layer("d", "Dense", "x", units=3, trainable=False, dtype="float16", seed=1,
                 kernel_initializer="zeros", bias_regularizer=None, kernel_constraint=None,
                 kernel_quantizer=None, activation="relu")  # fmt: skip
    assert layers.parameters(made) == {"units": 3, "activation": "relu"}
    assert not layers.is_inert("initializer_range")


def test_a_layer_under_another_name_is_the_same_layer() -> None:
    made = replace(layer("d", "Dense", "x", units=3), origin={"build": {"input_shape": [None, 4]}})
    named = layers.renamed(made, "a/b")
    assert (named.name, named.config["name"], named.config["units"]) == ("a/b", "a_b", 3)
    assert made.config["name"] == "d"
    assert named.object_digest == made.object_digest
    stale = layers.stale(made)
    assert stale.origin["build"] is None
    assert made.origin["build"] is not None


def test_an_activation_is_part_of_layers_that_have_one() -> None:
    act = layer("a", "Activation", "x", activation="relu")
    assert layers.contains(layer("d", "Dense", "x", activation="relu"), act)
    assert not layers.contains(layer("f", "Flatten", "x"), act)
    assert not layers.contains(layer("d", "Dense", "x", activation="relu"), layer("s", "Sum", "x"))
    assert layers.makes_masks(layer("e", "Embedding", "x", mask_zero=True))
    assert not layers.makes_masks(layer("e", "Embedding", "x", mask_zero=False))
    assert layers.makes_masks(layer("m", "Masking", "x"))


def test_a_mask_is_given_by_the_name_that_the_layer_has_for_it() -> None:
    a, b = ref("a"), ref("b")
    assert layers.masked(layer("r", "LSTM", "x"), [a]) == {"mask": a}
    two = Layer("r", "Attention", {}, [[ref("x"), ref("y")]])
    assert layers.masked(two, [a, None]) == {"mask": [a, None]}
    started = replace(layer("r", "LSTM", "x"), kwargs={"initial_state": [ref("y")]})
    assert layers.masked(started, [a, None]) == {"mask": a}  # states have no masks
    heads = Layer("h", "MultiHeadAttention", {}, [ref("x"), ref("y")])
    assert layers.masked(heads, [None, b]) == {"value_mask": b}
    named = replace(heads, kwargs={"use_causal_mask": True, "key": ref("z")})
    assert layers.masked(named, [a, None, b]) == {"query_mask": a, "key_mask": b}


def test_ids_are_what_all_embeddings_that_read_them_can_look_up() -> None:
    model = chain(layer("a", "Embedding", "x", input_dim=9), layer("b", "Embedding", "x",
                  input_dim=5), layer("c", "Embedding", "a", input_dim=2))  # fmt: skip
    assert layers.vocabulary(model, model.inputs[0]) == 5
    plain = chain(layer("a", "Flatten", "x"))
    assert layers.vocabulary(plain, plain.inputs[0]) == 2
    assert layers.words(plain, plain.inputs[0]) == ()


@pytest.mark.parametrize(("activation", "classifier"), [("sigmoid", True), ("linear", False)])
def test_one_number_that_ends_in_a_sigmoid_is_a_probability(
    activation: str, classifier: bool
) -> None:
    model = chain(layer("a", "Dense", "x", activation="sigmoid"),
                  layer("b", "Dense", "a", activation=activation))  # fmt: skip
    assert layers.is_classifier(model) is classifier
    assert not layers.is_classifier(replace(model, outputs=(Ref("x"),)))


# Logits.


@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "log_softmax", "hard_sigmoid"])
def test_an_output_that_squashes_becomes_two_layers(activation: str) -> None:
    model = chain(layer("a", "Dense", "x"),
                  layer("d", "Dense", "a", activation=activation, dtype="float16"),
                  outputs=(Ref("d"), Ref("a")))  # fmt: skip
    apart, logits = logits_apart(model)
    linear, end = apart.layers[1:]
    assert logits == Ref("d")
    assert (linear.config["activation"], linear.name) == ("linear", "d")
    assert (end.kind, end.config["activation"], end.inputs) == ("Activation", activation, ("d",))
    assert (end.config["dtype"], end.config["name"]) == ("float16", end.name)
    assert apart.outputs == (Ref(end.name), Ref("a"))
    assert model.layers[1].config["activation"] == activation


def test_the_new_layer_has_a_name_of_its_own() -> None:
    model = chain(layer("d_activation", "Dense", "x"), layer("d", "Dense", "d_activation",
                  activation="softmax"))  # fmt: skip
    apart, _ = logits_apart(model)
    assert [made.name for made in apart.layers] == ["d_activation", "d", "d_activation_"]


@pytest.mark.parametrize(
    ("last", "logits"),
    [
        (layer("s", "Softmax", "d"), "d"),
        (layer("s", "Activation", "d", activation="sigmoid"), "d"),
        (layer("s", "Activation", "d", activation="relu"), "s"),
        (layer("s", "Dense", "d", activation="relu"), "s"),
    ],
)
def test_where_the_logits_are_a_tensor_already_nothing_changes(last: Layer, logits: str) -> None:
    model = chain(layer("d", "Dense", "x"), last)
    assert logits_apart(model) == (model, Ref(logits))


def test_a_shared_output_and_an_input_are_left_alone() -> None:
    one = layer("d", "Dense", "x", activation="softmax")
    two = replace(layer("e", "Dense", "d", activation="softmax"), shares="d")
    for end in ("d", "e"):
        model = chain(one, two, outputs=(Ref(end),))
        assert logits_apart(model) == (model, Ref(end))
    fed = chain(one, outputs=(Ref("x"),))
    assert logits_apart(fed) == (fed, Ref("x"))


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_what_an_output_squashes_is_passed_on_by_one_more_layer(activation: str) -> None:
    """Whether it is a layer of its own, or the activation of one."""
    apart = chain(layer("d", "Dense", "x"), layer("s", "Activation", "d", activation=activation))
    fused = chain(layer("s", "Dense", "x", activation=activation))
    for model in (apart, fused):
        passed = lesson.passed_on(model)
        assert passed is not None
        assert passed.layers[:-1] == model.layers
        assert (passed.layers[-1].kind, passed.layers[-1].inputs) == ("Rescaling", ("s",))
        assert passed.outputs == (Ref("s_passed_on"),)
    assert lesson.passed_on(chain(layer("d", "Dense", "x", activation="relu"))) is None


def test_what_an_optimiser_does_besides_is_switched_off_by_a_value_that_it_takes() -> None:
    config = {"weight_decay": 0.05, "clipnorm": 1.0, "use_ema": True, "loss_scale_factor": None}
    found = lesson.features({"class_name": "AdamW", "config": config})
    off = {feature: {**config, **changed} for feature, changed in (
        ("decay", {"weight_decay": 0.0}),  # AdamW refuses None
        ("clipping", {"clipnorm": None}),
        ("averaging", {"use_ema": False}),
    )}  # fmt: skip
    assert {feature: without["config"] for feature, without in found.items()} == off


# Float64.


def test_a_specimen_in_float64_is_wide_everywhere_and_the_same_numbers(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    kernel = np.array([[0.1, 0.2]], "float16")
    ids = np.array([3, 4])
    weights = (Weight("kernel", blobs.put(kernel), (1, 2)), Weight("ids", blobs.put(ids), (2,)))
    policy = {"class_name": "DTypePolicy", "config": {"name": "mixed_bfloat16"}}
    inner = {"class_name": "Dense", "config": {"dtype": "float32", "units": 2}}
    config = {"dtype": policy, "layer": inner, "cells": [{"dtype": "float16"}, {"dtype": "int32"}],
              "vocabulary_dtype": "int64", "text": "float32"}  # fmt: skip
    made = replace(layer("d", "Wrapped", "x", **config), weights=weights)
    specimen = Specimen(chain(made), (np.ones((2, 4), "float32"),))
    wide = float64_of(specimen, blobs)
    found = wide.model.layers[0]
    assert found.config["dtype"] == found.config["layer"]["config"]["dtype"] == "float64"
    assert [cell["dtype"] for cell in found.config["cells"]] == ["float64", "int32"]
    assert (found.config["vocabulary_dtype"], found.config["text"]) == ("int64", "float32")
    arrays = [blobs.get(weight.digest) for weight in found.weights]
    assert [array.dtype.name for array in arrays] == ["float64", "int64"]
    np.testing.assert_array_equal(arrays[0], kernel.astype("float64"))
    assert (wide.model.inputs[0].dtype, wide.inputs[0].dtype.name) == ("float64", "float64")
    assert specimen.model.layers[0].config["dtype"] == policy
    assert asks_for(wide.model, "float64")
    assert not asks_for(specimen.model, "float64")


def test_integers_that_go_in_stay_integers(tmp_path: Path) -> None:
    model = chain(layer("e", "Embedding", "x"), dtype="int32")
    specimen = Specimen(model, (np.ones((2, 4), "int32"),))
    wide = float64_of(specimen, BlobStore(tmp_path))
    assert (wide.model.inputs[0].dtype, wide.inputs[0].dtype.name) == ("int32", "int32")


# Files.


def test_model_files_that_cannot_be_read_are_told_apart(tmp_path: Path) -> None:
    def refusal(name: str, content: bytes | None, weights: Path | None = None) -> str:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(UsageError) as refused:
            files.inspect(path, weights)
        return str(refused.value).replace(str(tmp_path), "HERE")

    good = tmp_path / "good.json"
    good.write_text(json.dumps({"class_name": "Functional"}))
    (tmp_path / "folder.keras").mkdir()
    assert refusal("none.keras", None) == "the file HERE/none.keras does not exist"
    assert refusal("folder.keras", None) == "HERE/folder.keras is not a file"
    assert "expected one of .keras, .h5, .hdf5, .json" in refusal("model.pt", b"x")
    assert "is not an HDF5 file (it begins with b'not hdf5')" in refusal("m.h5", b"not hdf5!")
    assert "not with m.h5, which holds its own weights" in refusal("m.h5", b"", good)
    assert "it has no class_name" in refusal("m.json", b"[]")
    assert "is not readable JSON" in refusal("m.json", b"\xff")
    assert "is not readable JSON" in refusal("m.json", b"[" * 100_000)
    big = b'{"class_name": "' + b"x" * (16 << 20) + b'"}'
    assert "its architecture takes 16,777,234 bytes, more than 16,777,216" in refusal("m.json", big)
    assert "is not an HDF5 file" in refusal("good.json", None, good)
    files.inspect(good, None)


@pytest.mark.parametrize("missing", ["config.json", "model.weights.h5"])
def test_an_archive_without_one_of_its_parts(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as archive:
        for name in {"config.json", "model.weights.h5"} - {missing}:
            archive.writestr(name, "{}")
    with pytest.raises(UsageError, match=f"is not a Keras model: it has no {missing} inside"):
        files.inspect(path, None)


def test_what_cannot_save_itself_is_no_live_model(tmp_path: Path) -> None:
    class Live:
        def save(self, path: Path) -> None:
            path.write_text("saved")

    assert files.saved(object(), tmp_path / "m") is None
    found = files.saved(Live(), tmp_path / "m.odd")
    assert found == tmp_path / "m.keras"
    assert found.read_text() == "saved"


# Classic libraries.


@pytest.mark.parametrize(
    ("requirements", "version", "classic"),
    [
        (("keras==2.1.4",), "2.1.4", True),
        (("keras-mxnet==2.2.4.3",), "2.2.4.3", True),
        (("Keras==3.0.0",), "3.0.0", False),
        (("keras>=2",), None, False),
        (("torch==2.4",), None, False),
        ((), None, False),
    ],
)
def test_which_keras_is_asked_for(
    requirements: tuple[str, ...], version: str | None, classic: bool
) -> None:
    assert keras_of(requirements) == version
    assert is_classic(requirements) is classic


@pytest.mark.parametrize(
    ("base", "requirement", "says"),
    [
        (BUILT_IN["torch"], "keras==2.3.1", "Keras 2.3.1 runs on theano, mxnet, tensorflow, not"),
        (CLASSIC["mxnet"], "keras==2.3.1", "MXNet has a Keras of its own; ask for keras-mxnet==."),
        (CLASSIC["theano"], "keras==2.0.4", "Keras 2.0.4 is not supported; choose 2.0.5 to 2.3.1"),
        (CLASSIC["theano"], "keras==2.4.0", "Keras 2.4.0 is not supported"),
    ],
)
def test_a_classic_version_that_does_not_run_there(
    base: Target, requirement: str, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        classic_of(base, (requirement,), "the name")
    assert str(refused.value).startswith("target 'the name': ")
    assert says in str(refused.value)


@pytest.mark.parametrize("version", ["2.0.5", "2.3.1"])
def test_the_first_and_the_last_classic_version_keep_what_the_user_said(version: str) -> None:
    base = replace(BUILT_IN["tensorflow"], env={"A": "1"}, library="mine", setup=Path("s.py"))
    found = classic_of(base, (f"keras=={version}",), "n")
    assert (found.worker, found.recipe, found.mode) == ("keras2", "tensorflow", "graph")
    assert (found.env, found.library, found.setup) == ({"A": "1"}, "mine", Path("s.py"))


def test_recipes_pin_what_they_install_and_the_users_python_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for recipe in RECIPES.values():
        assert recipe.interpreter(tmp_path / "python") == tmp_path / "python"
    monkeypatch.setattr("sys.version_info", (3, 13, 0))
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UsageError, match=r"need Python 3\.11, and python3\.11 is not on the path"):
        RECIPES["theano"].interpreter(None)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    lend_openblas(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    for name in ("scipy.libs", "mxnet"):
        (tmp_path / name).mkdir()
    (tmp_path / "scipy.libs" / "libopenblas-1.so").write_text("blas")
    lend_openblas(tmp_path)
    lent = sorted((tmp_path / "mxnet").iterdir())
    assert [path.name for path in lent] == ["libamath.so", "libarmpl_lp64_mp.so", "libastring.so"]
    assert {path.read_text() for path in lent} == {"blas"}


# Neurons.


def test_the_neurons_of_a_wrapped_layer_are_those_of_what_it_wraps() -> None:
    kernel = Weight("kernel", "", (3, 5, 2))
    turned = {"class_name": "Conv1DTranspose", "config": {"filters": 5}}
    wrapped = layer("t", "TimeDistributed", "x", layer=turned)
    assert neurons.neuron_axes(wrapped, kernel) == (-2,)
    twice = layer("t", "Bidirectional", "x", layer={"class_name": "TimeDistributed",
                  "config": {"layer": turned}})  # fmt: skip
    assert neurons.neuron_axes(twice, kernel) == (-2,)
    odd = layer("t", "TimeDistributed", "x", layer="no layer")
    assert neurons.neuron_axes(odd, kernel) == (-1,)


def test_channels_that_were_laid_flat_are_one_place_after_the_other() -> None:
    image = np.arange(12).reshape(2, 2, 3)  # three channels
    rows = neurons.flat_rows(np.array([0, 2]), 3, 4)
    assert sorted(image.reshape(-1)[rows]) == sorted(image[..., [0, 2]].reshape(-1))
