"""`check --train` on real frameworks: who is accused of which stage, and scripts that prove it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import joined
from outvote.commands.check.job import Job
from outvote.commands.check.result import check_result
from outvote.commands.check.run import check_in
from outvote.commands.record import written
from outvote.core.errors import UsageError
from outvote.core.lesson import Lesson
from outvote.dialects.keras.targets import BUILT_IN
from outvote.findings.gate import STRICT
from outvote.run.pool import Pool
from result_form import require_form

pytestmark = pytest.mark.frameworks

ADAM = {"class_name": "Adam", "config": {"learning_rate": 0.01, "clipnorm": 0.01}}
SGD = {"class_name": "SGD"}
MODEL = """
x = keras.Input((6,))
h = layers.Dense(5, activation="relu", kernel_regularizer="l2", name="first")(x)
h = layers.BatchNormalization(name="normal")(h)
h = layers.Dropout(0.5, name="drop")(h)
model = keras.Model(x, layers.Dense(3, activation="softmax", name="last")(h))
"""
# Forty layers, of which one is a relu.
DEEP = """
h = x = keras.Input((6, 6, 2))
for n in range(13):
    kind = "relu" if n == 6 else "relu6"
    h = layers.BatchNormalization()(layers.Conv2D(3, 3, padding="same")(h))
    h = layers.Activation(kind, name=f"{kind}_{n}")(h)
model = keras.Model(x, layers.Dense(2)(layers.GlobalAveragePooling2D()(h)))
"""
# What the branch gives is multiplied by 0: it shows in the gradient of that 0 alone.
HIDDEN = """
x = keras.Input((6,))
h = layers.Activation("gelu", name="wrong")(layers.Dense(5)(x))
h = layers.BatchNormalization(gamma_initializer="zeros", name="nothing")(h)
model = keras.Model(x, layers.Dense(2)(layers.Add()([layers.Dense(5)(x), h])))
"""
# Gradients overflow behind it; at padding that is 0 times infinity for some.
OVERFLOWS = """
x = keras.Input((1, 1, 3))
h = layers.Flatten()(layers.DepthwiseConv2D(5, padding="same", name="on_padding")(x))
h = layers.Rescaling(1e38)(layers.Rescaling(1e38)(layers.Dense(2)(h)))
model = keras.Model(x, h)
"""
NOT_A_NUMBER = """
x = keras.Input((1, 1, 3))
h = layers.Normalization(mean=[0.0] * 3, variance=[-1.0] * 3)(x)
h = layers.Flatten()(layers.DepthwiseConv2D(5, padding="same", name="on_padding")(h))
model = keras.Model(x, layers.Dense(2)(h))
"""
# One process: the gradient of relu is halved, clipping by norm is by twice the norm, and gelu is
# a relu.
PLANT = """
from keras import ops
from keras.src import backend
from keras.src.optimizers.base_optimizer import BaseOptimizer

released, clip = backend.nn.relu, BaseOptimizer._clip_by_norm


def relu(x):
    y = released(x)
    return ops.stop_gradient(y) + 0.5 * (y - ops.stop_gradient(y))


backend.nn.relu = relu
backend.nn.gelu = lambda x, approximate=True: released(x)
BaseOptimizer._clip_by_norm = lambda self, *given: 2 * clip(self, *given)
"""


@pytest.fixture(scope="module")
def pool(real_pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    script = tmp_path_factory.mktemp("plant") / "plant.py"
    script.write_text(PLANT)
    planted = replace(BUILT_IN["jax"], name="planted", setup=script, library="planted")
    with joined(real_pool, planted) as running:
        yield running


@pytest.fixture(scope="module")
def model(keras_file: Callable[..., Path]) -> Path:
    return keras_file(MODEL)


def checked(pool: Pool, model: Path, out: Path, *names: str, **more: Any) -> dict[str, Any]:
    lesson = Lesson(more.pop("optimizer", ADAM), more.pop("loss", None), steps=2)
    targets = tuple(pool.targets[name] for name in names)
    job = Job(model, targets, lesson=lesson, **more)
    found = check_in(pool, job, out=out)
    result = written(check_result(found), out, STRICT)
    require_form(result)
    return result


def test_released_libraries_agree_in_every_stage(pool: Pool, model: Path, tmp_path: Path) -> None:
    result = checked(pool, model, tmp_path, "tensorflow", "jax", "torch", every_layer=True)
    assert result["findings"] == []
    stages = {row["stage"]: row for row in result["training"]["stages"]}
    assert list(stages) == [
        *("forward", "loss", "gradient", "statistics"),
        *("regulariser", "optimiser", "steps"),
    ]
    assert all(row["agrees"] and row["arrays"] for row in stages.values())
    assert stages["gradient"]["exercises"] == 5  # the whole, and four layers
    assert any("drop would drop" in text for text in result["warnings"])


def test_each_stage_is_accused_of_its_own_and_scripts_prove_it(
    pool: Pool, model: Path, tmp_path: Path
) -> None:
    result = checked(pool, model, tmp_path, "jax", "planted", "torch")
    told = {(f["stage"], f["layer"], f["accused"], f["triage"]) for f in result["findings"]}
    assert told == {
        ("gradient", "first", "planted", "bug"),
        ("clipping", None, "planted", "bug"),
    }
    (gradient,) = (f for f in result["findings"] if f["stage"] == "gradient")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="training"' in page
    assert 'id="map"' in page
    located = gradient["localization"]
    assert located["direction"] == "backward"
    assert located["introduction_rate"]["ranking"][0]["layer"] == "first"
    assert ["normal", "first"] in located["map"]["edges"]
    every = proved(tmp_path / str(gradient["repro"]))
    told_by = {line.split()[0]: line.split()[1] for line in every.stdout.splitlines()}
    assert told_by == {"jax": "ok:", "planted": "WRONG:", "torch": "ok:"}, every.stdout
    assert every.returncode == 1
    (clipping,) = (f for f in result["findings"] if f["stage"] == "clipping")
    setup = str(pool.targets["planted"].setup)
    for more, says in (({}, "ok:"), ({"SETUP": setup}, "WRONG:")):  # as it runs each target
        one = proved(tmp_path / str(clipping["repro"]), KERAS_BACKEND="jax", **more)
        assert one.stdout.startswith(says), one.stdout
        assert one.returncode == (says == "WRONG:")


def test_one_layer_of_a_deep_model_is_accused(
    pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    deep = keras_file(DEEP)
    result = checked(pool, deep, tmp_path, "tensorflow", "planted", "torch", optimizer=SGD)
    told = {(f["stage"], f["layer"], f["accused"], f["triage"]) for f in result["findings"]}
    assert told == {("gradient", "relu_6", "planted", "bug")}


def test_an_output_that_the_model_hides_is_accused_of_the_gradients_it_parts(
    pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    hidden = keras_file(HIDDEN)
    result = checked(pool, hidden, tmp_path, "tensorflow", "planted", "torch", optimizer=SGD)
    told = {(f["stage"], f["layer"], f["accused"], f["triage"]) for f in result["findings"]}
    assert told == {("forward", "wrong", "planted", "bug")}


def test_a_deep_model_is_no_bug_of_anybody(
    pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    result = checked(pool, keras_file(DEEP), tmp_path, "tensorflow", "torch", optimizer=SGD)
    assert {f["triage"] for f in result["findings"]} <= {"precision"}


@pytest.mark.parametrize("text", [OVERFLOWS, NOT_A_NUMBER], ids=["overflows", "not-a-number"])
def test_nobody_is_wrong_where_nothing_has_a_derivative(
    pool: Pool, keras_file: Callable[..., Path], tmp_path: Path, text: str
) -> None:
    model = keras_file(text)
    result = checked(pool, model, tmp_path, "tensorflow", "jax", "torch", every_layer=True)
    assert [(f["triage"], f["stage"]) for f in result["findings"]] == [("difference", "gradient")]
    assert "no answer is wrong" in result["findings"][0]["reason"]


def proved(script: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"} | more
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env)


def test_what_cannot_be_trained_is_refused(
    pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    flips = keras_file(
        "x = keras.Input((4, 4, 1))\n"
        "model = keras.Model(x, layers.Flatten()(layers.RandomFlip(name='flip')(x)))\n"
    )
    with pytest.raises(UsageError, match="layer 'flip' draws random numbers in training"):
        checked(pool, flips, tmp_path, "torch", "jax")
