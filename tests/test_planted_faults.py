"""CRADLE's bugs planted in real frameworks: found, the right target accused, the right layer named.

Small versions of benchmarks/cradle_models.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import PLANTED
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.judge.compare import Settings
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks

MODELS = {
    # fault: (model, the layer that must be named, kind of failure)
    "batchnorm_epsilon": (
        """
x = keras.Input((8, 8, 3))
y = layers.BatchNormalization(name="guilty")(layers.Conv2D(4, 3, strides=2, name="before")(x))
model = keras.Model(x, layers.Dense(5)(layers.Flatten()(layers.ReLU()(y))))
""",
        "guilty",
        "inconsistency",
    ),
    "average_pool_counts_padding": (
        """
x = keras.Input((7, 7, 3))
y = layers.Conv2D(4, 3, name="before")(x)
y = layers.AveragePooling2D(3, strides=1, padding="same", name="guilty")(y)
model = keras.Model(x, layers.Dense(5)(layers.Flatten()(y)))
""",
        "guilty",
        "inconsistency",
    ),
    "same_padding_wrong_side": (
        """
x = keras.Input((8, 8, 3))
y = layers.Conv2D(4, 3, name="before")(x)
y = layers.Conv2D(4, 3, strides=2, padding="same", name="guilty")(y)
model = keras.Model(x, layers.Dense(5)(layers.Flatten()(y)))
""",
        "guilty",
        "inconsistency",
    ),
    "softmax_overflow": (
        """
x = keras.Input((6,))
y = layers.Dense(7, kernel_initializer=keras.initializers.RandomNormal(0, 100), name="before")(x)
model = keras.Model(x, layers.Softmax(name="guilty")(y))
""",
        "guilty",
        "nan",
    ),
}


def job_for(path: Path, pool: Pool, planted: str, **more: object) -> Job:
    """The planted backend against the other two, released."""
    names = [f"planted-{name}" if name == planted else name for name in PLANTED]
    targets = tuple(pool.targets[name] for name in names)
    return Job(path, targets, count=4, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", PLANTED)
@pytest.mark.parametrize("fault", MODELS)
def test_a_planted_fault_is_found_accused_and_localised(
    fault: str, backend: str, real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    snippet, layer, kind = MODELS[fault]
    checked = check_in(real_pool, job_for(keras_file(snippet), real_pool, backend))
    (finding,) = checked.findings
    assert finding.accused == f"planted-{backend}"
    assert finding.layer is not None
    assert finding.layer.name == layer
    assert (finding.kind, finding.triage) == (kind, "bug")


@pytest.mark.parametrize("fault", MODELS)
def test_the_released_libraries_agree_on_the_same_models(
    fault: str, real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    path = keras_file(MODELS[fault][0])
    targets = tuple(real_pool.targets[n] for n in ("tensorflow", "jax", "torch", "openvino"))
    checked = check_in(real_pool, Job(path, targets, count=4))
    assert checked.verdict == "consistent", [f.title for f in checked.findings]
    assert len(checked.comparisons) == 6


def test_a_deep_random_network_that_amplifies_rounding_is_not_a_bug(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """Chaotic on purpose: large weights through tanh. Different, but by rounding."""
    path = keras_file(
        """
x = keras.Input((16,))
y = x
for i in range(40):
    y = layers.Dense(16, activation="tanh",
                     kernel_initializer=keras.initializers.RandomNormal(0, 1.5, seed=i))(y)
model = keras.Model(x, y)
"""
    )
    targets = tuple(real_pool.targets[n] for n in ("tensorflow", "jax", "torch"))
    checked = check_in(real_pool, Job(path, targets, count=8, settings=Settings()))
    distances = [m.maximum for pair in checked.comparisons for m in pair.measured]
    assert max(distances) > 1e-3, "the network does not amplify enough to test anything"
    assert checked.verdict == "consistent", [(f.triage, f.title) for f in checked.findings]
    assert checked.explained


def test_the_evidence_proves_it_without_outvote(
    real_pool: Pool, keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    """repro.py exits 1 while the bug is there, and 0 once the fault is taken out."""
    path = keras_file(MODELS["batchnorm_epsilon"][0])
    names = ("planted-jax", "numpy", "openvino")  # of which a script shows two that start soon
    job = Job(path, tuple(real_pool.targets[name] for name in names), count=4)
    checked = check_in(real_pool, job, out=tmp_path)
    (repro,) = checked.repros.values()
    script = tmp_path / repro
    bad = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "planted-jax              WRONG: float32 " in bad.stdout
    assert bad.stdout.count("ok:") == 1
    assert len(script.read_text().splitlines()) <= 32
    text = script.read_text()
    script.write_text(text.replace("'SETUP': ", "'NO_SETUP': "))
    good = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.count("ok:") == 2


def test_masks_travel_into_the_evidence(real_pool: Pool, keras_file: Callable[..., Path]) -> None:
    """A recurrent layer's one-layer model takes the mask it had as an input."""
    from outvote.bench.reader import read_model
    from outvote.bench.steps import steps
    from outvote.core.cuts import one_layer

    path = keras_file(
        """
t = keras.Input((5,), dtype="int32")
model = keras.Model(t, layers.LSTM(3, name="lstm")(layers.Embedding(7, 4, mask_zero=True)(t)))
"""
    )
    model, _ = read_model(real_pool, path, None)
    x = np.array([[1, 2, 0, 3, 0]], np.int32)
    step = list(steps(real_pool, model, [x], "jax", ["torch"]))[-1]
    assert step.layer.name == "lstm"
    alone, arrays = one_layer("keras", step.layer, step.given)
    assert [i.dtype for i in alone.inputs] == ["float32", "bool"]
    np.testing.assert_array_equal(arrays[1], x != 0)
    np.testing.assert_allclose(
        step.own["torch"].arrays[0], step.isolated["jax"].arrays[0], rtol=1e-4, atol=1e-6
    )
