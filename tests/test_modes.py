"""Compiled modes are targets of their own: they agree when healthy, and are caught when not."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import joined
from outvote.commands.check.checked import Checked
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks

# Wrong in any traced graph, right when called eagerly.
TRACED = """
import keras.src.backend as backend, tensorflow as tf
released = backend.nn.relu
def relu(x):
    return released(x) * (1.0 if tf.executing_eagerly() else 1.01)
backend.nn.relu = relu
"""
# Wrong only where a graph already holds a sigmoid: no layer alone can show it.
FUSED = """
import keras.src.backend as backend, tensorflow as tf
relu_released, sigmoid_released = backend.nn.relu, backend.nn.sigmoid
def sigmoid(x):
    if not tf.executing_eagerly():
        tf.compat.v1.get_default_graph()._seen = True
    return sigmoid_released(x)
def relu(x):
    seen = getattr(tf.compat.v1.get_default_graph(), "_seen", False)
    return relu_released(x) * (1.01 if seen else 1.0)
backend.nn.relu, backend.nn.sigmoid = relu, sigmoid
"""
# Wrong only in Keras' own models, of which a layer called by itself knows nothing.
FUNCTIONAL = """
import keras
from keras.src.models.functional import Functional
released = Functional.call
def call(self, *args, **kwargs):
    wrong = any(isinstance(layer, keras.layers.LSTM) for layer in self.layers)
    return keras.tree.map_structure(
        lambda y: y * (1.01 if wrong else 1.0), released(self, *args, **kwargs)
    )
Functional.call = call
"""
MODEL = """
x = keras.Input((6, 6, 2))
y = layers.Conv2D(3, 3, padding="same", name="conv")(x)
y = layers.BatchNormalization(name="norm")(y)
y = layers.Activation("sigmoid", name="soft")(y)
y = layers.Reshape((2, 54))(y)
y = layers.LSTM(5, name="lstm")(y)
y = layers.ReLU(name="relu")(layers.Dense(4, name="dense")(y))
model = keras.Model(x, layers.Dense(3, name="last")(y))
"""
MASKED = """
x = keras.Input((4, 2))
y = layers.Concatenate()([layers.Masking()(x), x])
model = keras.Model(x, layers.LSTM(3)(y))
"""
MODES = ("tensorflow:graph", "tensorflow:xla", "tensorflow:no-onednn", "jax:jit", "torch:compile")
OPENVINO = ("openvino:dynamic", "openvino:fast")
PREDICT = tuple(f"{name}:predict" for name in ("tensorflow", "jax", "torch", "numpy", "openvino"))


@pytest.fixture(scope="module")
def pool(real_pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.mktemp("setup")
    (folder / "traced.py").write_text(TRACED)
    (folder / "fused.py").write_text(FUSED)
    (folder / "functional.py").write_text(FUNCTIONAL)
    graph = BUILT_IN["tensorflow:graph"]
    planted = [
        replace(graph, name="traced", setup=folder / "traced.py"),
        replace(graph, name="fused", setup=folder / "fused.py"),
        replace(BUILT_IN["torch:predict"], name="functional", setup=folder / "functional.py"),
    ]
    modes = [BUILT_IN[name] for name in (*MODES, *OPENVINO, *PREDICT)]
    with joined(real_pool, *modes, *planted) as pool:
        yield pool


@pytest.fixture(scope="module")
def path(keras_file: Callable[..., Path]) -> Path:
    return keras_file(MODEL)


def check(pool: Pool, path: Path, *names: str) -> Checked:
    return check_in(pool, Job(path, tuple(pool.targets[name] for name in names), count=4))


def test_all_modes_agree(pool: Pool, path: Path) -> None:
    checked = check(pool, path, "jax", *MODES, "openvino:dynamic")
    assert all(run.ok for run in checked.runs.values()), checked.runs
    assert checked.verdict == "consistent", [f.title for f in checked.findings]
    assert len(checked.comparisons) == 21


def test_what_keras_predicts_is_what_its_layers_give(pool: Pool, path: Path) -> None:
    names = PREDICT if platform.machine() not in ("aarch64", "arm64") else PREDICT[:-1]
    checked = check(pool, path, "torch", *names)  # OpenVINO cannot compile it there
    assert all(run.ok for run in checked.runs.values()), checked.runs
    assert checked.verdict == "consistent", [f.title for f in checked.findings]


def test_keras_computes_masks_anew_under_names_that_no_layer_has(
    pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """Masks of a file are no layers; the layer has the name that Keras gives its operation."""
    path = keras_file(MASKED)
    names = ("numpy", "numpy:predict", "torch:predict")
    checked = check(pool, path, *names)
    assert all(run.ok for run in checked.runs.values()), checked.runs
    assert checked.verdict == "consistent", [f.title for f in checked.findings]
    kinds = [layer.kind for layer in checked.case.model.layers]
    assert kinds == ["Masking", "Concatenate", "LSTM"]


def test_a_fault_that_only_predict_shows_is_found_and_proved(
    pool: Pool, path: Path, tmp_path: Path
) -> None:
    names = ("functional", "numpy", "jax")
    job = Job(path, tuple(pool.targets[name] for name in names), count=2)
    (finding,) = check_in(pool, job, out=tmp_path).findings
    assert (finding.accused, finding.triage) == ("functional", "bug")
    assert finding.layer is not None
    assert finding.layer.kind == "LSTM"
    script = tmp_path / "findings" / finding.fingerprint / "repro.py"
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    told = dict(line.split()[:2] for line in ran.stdout.splitlines())
    assert told == {"functional": "WRONG:", "numpy": "ok:", "jax": "ok:"}


def test_a_mode_really_compiles(pool: Pool, path: Path) -> None:
    """The compiled program rounds differently somewhere, or the mode is eager in disguise."""
    checked = check(pool, path, "tensorflow", "tensorflow:xla", "torch", "torch:compile")
    largest = {pair.targets: pair.measured[-1].maximum for pair in checked.comparisons}
    assert largest["tensorflow", "tensorflow:xla"] > 0
    assert largest["torch", "torch:compile"] > 0


def test_a_fault_that_only_tracing_shows_is_found_in_its_layer(pool: Pool, path: Path) -> None:
    (finding,) = check(pool, path, "traced", "tensorflow", "jax", "torch").findings
    assert finding.layer is not None
    assert (finding.accused, finding.layer.name, finding.triage) == ("traced", "relu", "bug")


def test_a_fault_that_only_the_whole_graph_shows_is_found_by_cutting(
    pool: Pool, path: Path
) -> None:
    (finding,) = check(pool, path, "fused", "tensorflow", "jax", "torch").findings
    assert finding.layer is not None
    assert (finding.accused, finding.layer.name, finding.triage) == ("fused", "relu", "bug")
    assert "in the whole graph only" in finding.title


def test_lower_precision_by_choice_is_not_called_a_bug(pool: Pool, path: Path) -> None:
    """openvino:fast may pick bf16 or f16; where it picks f32 it simply agrees."""
    checked = check(pool, path, "openvino:fast", "jax", "torch")
    assert checked.runs["openvino:fast"].ok
    assert checked.verdict == "consistent", [(f.triage, f.title) for f in checked.findings]
    said = checked.hellos["openvino:fast"].reply.precision["inference"]
    if said != "f32":
        distances = [m.maximum for p in checked.comparisons for m in p.measured]
        assert np.max(distances) > 1e-5
