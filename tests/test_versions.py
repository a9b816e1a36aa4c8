"""Real versions side by side: older Keras 3 as overlays, and the classic libraries.

Both come from the package index, or from the user's cache folder; without either, these tests fail
with pip's reason. Classic environments are large: `make classic` builds them beside other tests.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.bench.reader import read_model
from outvote.bench.steps import call_alone, steps
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in, run
from outvote.commands.localize.job import LocalizeJob
from outvote.commands.localize.run import run as run_localize
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.keras.recipes import RECIPES
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.local import LocalPool
from outvote.run.pool import Pool
from outvote.targets.choose import choose, known_targets
from outvote.targets.environments.provide import provide

pytestmark = pytest.mark.frameworks
KNOWN = known_targets()
Build = Callable[..., Path]

MULTI_HOT = (
    "model = keras.Sequential([keras.Input((1,), dtype='int32'),"
    "layers.CategoryEncoding(num_tokens=4, output_mode='multi_hot')])"
)
CONCATENATED_MASKS = """
x = keras.Input((4, 2))
y = layers.Concatenate()([layers.Masking()(x), x])
model = keras.Model(x, layers.LSTM(3)(y))
"""
LATER_PARAMETERS = """
x = keras.Input((6, 6, 3))
y = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same", activation="relu")(x))
y = layers.Reshape((36, 4))(y)
y = layers.MultiHeadAttention(2, 4)(y, y)
model = keras.Model(x, layers.Dense(3, activation="softmax")(layers.Flatten()(y)))
"""


def older(*names: str) -> tuple[Target, ...]:
    return provide(choose(names, KNOWN))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with LocalPool([*older("keras==3.3.3/numpy", "keras==3.3.3/jax"), BUILT_IN["jax"]]) as pool:
        yield pool


def test_a_fault_of_masks_that_predict_alone_shows_is_seen(keras_file: Build) -> None:
    """Keras 3.12.0 mended the mask of Concatenate (upstream change 21611)."""
    path = keras_file(CONCATENATED_MASKS)
    names = ("keras==3.8.0/torch:predict", "keras==3.8.0/numpy:predict", "torch:predict")
    with LocalPool(older(*names)) as pool:
        found = checked(pool, path, *names, count=2)
    message = found.runs["keras==3.8.0/torch:predict"].message
    assert "broadcast_to" in message
    assert found.runs["torch:predict"].ok
    assert [finding.accused for finding in found.findings] == ["keras==3.8.0/torch:predict"]


def test_a_grid_shows_where_a_bug_went_and_accuses_the_old_version(
    keras_file: Build, tmp_path: Path
) -> None:
    """Keras 3.4.0 mended CategoryEncoding on NumPy (upstream change 19790)."""
    targets = choose(["keras=={3.3.3,3.4.0}/{numpy,jax}"], KNOWN)
    data = {"x": np.array([[0], [2], [3]], "int32")}
    result = run(Job(keras_file(MULTI_HOT), tuple(targets), data=data, out=tmp_path))
    assert result["version_matrix"] == {
        "versions": ["keras==3.3.3", "keras==3.4.0"],
        "pairs": [["numpy", "jax"]],
        "cells": [["shape"], ["consistent"]],
    }
    (finding,) = result["findings"]
    assert (finding["accused"], finding["layer_kind"]) == (
        "keras==3.3.3/numpy",
        "CategoryEncoding",
    )
    versions = {t["name"]: t["versions"]["keras"] for t in result["targets"]}
    assert versions["keras==3.3.3/jax"] == "3.3.3"
    page = (tmp_path / "report.html").read_text()
    assert 'id="versions"' in page
    script = tmp_path / finding["repro"]
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert told.pop("keras==3.3.3/numpy").startswith("WRONG: float32 (")
    assert all(text.startswith("ok:") for text in told.values()), done.stdout


def checked(pool: Pool, path: Path, *names: str, **more: Any) -> Checked:
    return check_in(pool, Job(path, tuple(pool.targets[name] for name in names), **more))


def test_parameters_that_came_later_do_not_stop_an_old_version(
    pool: Pool, keras_file: Build
) -> None:
    found = checked(pool, keras_file(LATER_PARAMETERS), "keras==3.3.3/jax", "jax", count=2)
    assert found.verdict == "consistent"
    assert [run.outcome for run in found.runs.values()] == [Outcome.OK, Outcome.OK]


def test_a_layer_that_came_later_is_a_gap(pool: Pool, keras_file: Build) -> None:
    path = keras_file("model = keras.Sequential([keras.Input((4,)), layers.RMSNormalization()])")
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    run = asked(pool, "keras==3.3.3/jax", model, np.ones((2, 4), "float32"))
    assert run.outcome is Outcome.UNSUPPORTED
    assert "Keras 3.3.3 has no layer RMSNormalization" in run.message


def test_each_version_takes_its_own_default(pool: Pool, keras_file: Build) -> None:
    """Discretization computed in int64 before 3.12, and wrongly so in a graph of TensorFlow."""
    layer = "layers.Discretization(bin_boundaries=[0.1, 0.5])"
    path = keras_file(f"model = keras.Sequential([keras.Input((1,)), {layer}])")
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    run = asked(pool, "keras==3.3.3/jax", model, np.array([[0.3], [2.0]], "float32"))
    assert run.ok, run.message
    outputs = run.reply.outputs
    assert (outputs.dtypes, outputs.arrays[0].tolist()) == (("int32",), [[1], [2]])


def asked(pool: Pool, name: str, model: Model, x: Any, jitter: int | None = None) -> Run[Ran]:
    inputs = (pool.blobs.put(x),)
    return pool.ask(name, RunModel(model=model, inputs=inputs, batch=len(x), jitter=jitter))


CLASSIC = ("keras==2.1.4/tensorflow", "keras==2.1.4/theano")
CNN = """
x = keras.Input((8, 8, 3))
y = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same")(x))
y = layers.MaxPooling2D()(layers.ReLU(6.0)(y))
y = layers.Concatenate()([y, layers.Conv2D(2, (1, 3), padding="same", activation="tanh")(y)])
y = layers.GlobalAveragePooling2D(keepdims=True)(y)
model = keras.Model(x, layers.Dense(3, activation="softmax")(layers.Flatten()(y)))
"""
POOLING = (
    "model = keras.Sequential([keras.Input((4, 4, 1)),"
    "layers.AveragePooling2D(3, strides=2, padding='same')])"
)


def why_not() -> str:
    """What stands in the way of classic environments on this machine; empty where nothing does."""
    here = f"{platform.system()} {platform.machine()}"
    if here not in ("Linux x86_64", "Linux aarch64"):
        return f"TensorFlow 2.12 and MXNet 1.9.1 have no wheels for {here}"
    try:
        RECIPES["theano"].interpreter(None)
    except UsageError as error:
        return str(error)
    return ""


WHY_NOT = why_not()
is_classic = pytest.mark.xfail(bool(WHY_NOT), reason=WHY_NOT, raises=UsageError, strict=True)


@pytest.fixture(scope="module")
def classic() -> Iterator[Callable[[str], Pool]]:
    """A pool with the classic target that is asked for; its environment is built if need be."""
    with LocalPool([BUILT_IN["jax"]]) as pool:

        def with_target(name: str) -> Pool:
            if name not in pool.targets:
                pool.add(*provide(choose([name], KNOWN)))
            return pool

        yield with_target


@is_classic
@pytest.mark.parametrize("name", [*CLASSIC, "mxnet"])
def test_a_classic_target_agrees_with_keras_3_and_steps_through_layers(
    classic: Callable[[str], Pool], keras_file: Build, name: str
) -> None:
    pool = classic(name)
    job = Job(keras_file(CNN), (pool.targets[name], pool.targets["jax"]), count=3, every_layer=True)
    found = check_in(pool, job)
    assert [run.message for run in found.runs.values()] == ["", ""]
    assert found.verdict == "consistent"
    assert found.hellos[name].reply.versions["numpy"] == "1.23.5"


@is_classic
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("keras==2.1.4/theano", [10 / 9, 8 / 3, 17 / 3, 10]),
        ("keras==2.1.5/theano", [2.5, 4, 8.5, 10]),
        ("keras==2.1.4/tensorflow", [5, 6.5, 11, 12.5]),
    ],
)
def test_the_pooling_bug_of_the_paper_is_in_the_real_library(
    classic: Callable[[str], Pool], keras_file: Build, name: str, values: list[float]
) -> None:
    pool = classic(name)
    model, _ = read_model(pool, keras_file(POOLING), None, [BUILT_IN["jax"]])
    ramp = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    run = asked(pool, name, model, ramp)
    assert run.ok, run.message
    np.testing.assert_allclose(run.reply.outputs.arrays[0].reshape(-1), values, rtol=1e-6)
    moved = asked(pool, name, model, ramp, jitter=1)
    assert moved.ok, moved.message
    apart = np.abs(moved.reply.outputs.arrays[0] - run.reply.outputs.arrays[0]).max()
    assert 0 < apart < 1e-4


@is_classic
def test_classic_targets_alone_are_checked_up_to_the_verdict(
    classic: Callable[[str], Pool], keras_file: Build, tmp_path: Path
) -> None:
    """CRADLE's own bug on CRADLE's own libraries."""
    targets = tuple(classic(name).targets[name] for name in CLASSIC)
    job = Job(keras_file(POOLING), targets, count=2, out=tmp_path / "out", minimise=2)
    (finding,) = run(job)["findings"]  # Theano compiles all that the minimiser tries
    assert (finding["accused"], finding["triage"]) == ("keras==2.1.4/theano", "bug")
    assert finding["layer_kind"] == "AveragePooling2D"


@is_classic
def test_a_stateful_layer_of_keras_2_begins_every_call_with_zeros(
    classic: Callable[[str], Pool], keras_file: Build
) -> None:
    """In batches of any size, and in a session: own tensors, another's, and again."""
    pool, name = classic(CLASSIC[0]), CLASSIC[0]
    path = keras_file(
        "x = keras.Input(batch_shape=(2, 5, 3))\n"
        "y = layers.LSTM(4, stateful=True, return_sequences=True)(x)\n"
        "model = keras.Model(x, layers.SimpleRNN(2, stateful=True)(y))"
    )
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    right = asked(pool, "jax", model, x).reply.outputs.arrays[0]
    for rows in (slice(None), slice(None), slice(1)):
        run = asked(pool, name, model, x[rows])
        assert run.ok, run.message
        np.testing.assert_allclose(run.reply.outputs.arrays[0], right[rows], rtol=1e-4, atol=1e-6)
    for step in steps(pool, model, [x], "jax", [name]):
        assert not step.failed
        own, alone = step.own[name].arrays[0], step.isolated[name].arrays[0]
        np.testing.assert_allclose(own, alone, rtol=1e-4, atol=1e-6)
        again = call_alone(pool, [name], step.layer, step.given)[name]
        np.testing.assert_array_equal(again.arrays[0], alone)


@is_classic
def test_keras_mxnet_leaves_out_a_trained_gamma(
    classic: Callable[[str], Pool], keras_file: Build
) -> None:
    """Its own bug: it never tells MXNet, which fixes gamma at 1 unless told otherwise, not to."""
    pool = classic("mxnet")
    weights = np.array([[2, 3, 4], [0, 0, 1], [1, 1, 1], [4, 4, 1]], "float32")
    path = keras_file(
        "model = keras.Sequential([keras.Input((3,)), layers.BatchNormalization()])\n"
        f"model.set_weights([np.array(w) for w in {weights.tolist()}])"
    )
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    x = np.array([[1, 2, 3], [3, 5, 7]], "float32")
    gamma, beta, mean, variance = weights
    plain = (x - mean) / np.sqrt(variance + 1e-3)
    right, wrong = (
        asked(pool, name, model, x).reply.outputs.arrays[0] for name in ("jax", "mxnet")
    )
    np.testing.assert_allclose(right, gamma * plain + beta, rtol=1e-5)
    np.testing.assert_allclose(wrong, plain + beta, rtol=1e-5)


@is_classic
@pytest.mark.parametrize(
    ("layer", "said"),
    [
        ("layers.LayerNormalization()", "has no layer LayerNormalization"),
        ("layers.Dense(2, activation='gelu')", "has no activation 'gelu'"),
        ("layers.Dense(2, dtype='float16')", "Dense in float16 is not translated"),
    ],
)
def test_what_keras_2_did_not_have_is_a_gap(
    classic: Callable[[str], Pool], keras_file: Build, layer: str, said: str
) -> None:
    pool = classic(CLASSIC[0])
    path = keras_file(f"model = keras.Sequential([keras.Input((3, 4)), {layer}, layers.Flatten()])")
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    run = asked(pool, CLASSIC[0], model, np.ones((2, 3, 4), "float32"))
    assert run.outcome is Outcome.UNSUPPORTED
    assert said in run.message


@is_classic
def test_an_operation_is_no_layer_that_keras_2_could_have(
    classic: Callable[[str], Pool], keras_file: Build
) -> None:
    pool = classic(CLASSIC[0])
    path = keras_file("x = keras.Input((3, 4))\nmodel = keras.Model(x, keras.ops.tril(x))")
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    run = asked(pool, CLASSIC[0], model, np.ones((2, 3, 4), "float32"))
    assert run.outcome is Outcome.UNSUPPORTED
    assert "is not a layer that Keras 2 could have" in run.message


@is_classic
def test_keras_2_computes_masks_by_itself(
    classic: Callable[[str], Pool], keras_file: Build
) -> None:
    pool = classic(CLASSIC[0])
    path = keras_file(
        "model = keras.Sequential([keras.Input((3, 4)), layers.Masking(), layers.LSTM(2)])"
    )
    model, _ = read_model(pool, path, None, [BUILT_IN["jax"]])
    x = np.ones((2, 3, 4), "float32")
    x[1, 1:] = 0
    right, found, unmasked = (
        asked(pool, name, model, given).reply.outputs.arrays[0]
        for name, given in (("jax", x), (CLASSIC[0], x), (CLASSIC[0], x + 1e-3))
    )
    np.testing.assert_allclose(found, right, atol=1e-5)
    assert np.abs(unmasked - right).max() > 1e-2


@is_classic
def test_theano_and_tensorflow_part_by_padding_and_strides(
    classic: Callable[[str], Pool], keras_file: Build, tmp_path: Path
) -> None:
    """AUDEE's example: a convolution with stride 2 pads another side on Theano."""
    names = ["keras==2.2.4/theano", "keras==2.2.4/tensorflow"]
    for name in names:
        classic(name)
    path = keras_file(
        "model = keras.Sequential([keras.Input((8, 8, 2)),"
        "layers.Conv2D(3, 3, strides=2, padding='same', name='guilty'), layers.ReLU()])"
    )
    result = run_localize(LocalizeJob(path, tuple(choose(names, KNOWN))))
    (suspect,) = result["pairs"][0]["suspects"]
    assert suspect["layer"] == "guilty"
    assert {cause["parameter"] for cause in suspect["causes"]} == {"padding", "strides"}
