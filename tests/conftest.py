"""Fixtures shared by all tests. Real frameworks are started once for the whole session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.core.target import Target
from outvote.run.pool import Pool
from outvote.targets import BUILT_IN

REAL = ("tensorflow", "jax", "torch", "openvino", "numpy")


def fake(name: str, misdeed: str = "", library: str | None = None) -> Target:
    """A fake target with a vote of its own."""
    env = {"OUTVOTE_FAKE": misdeed} if misdeed else {}
    return replace(BUILT_IN["fake"], name=name, env=env, library=library or name)


@pytest.fixture
def fake_model(tmp_path: Path) -> Path:
    """A file that the fake target reads: dense → relu → dense → add(skip) → softmax."""
    rng = np.random.default_rng(0)

    def weights(*shapes: tuple[int, ...]) -> list[Any]:
        return [rng.normal(size=shape).tolist() for shape in shapes]

    layers = [
        {"name": "d1", "kind": "Dense", "inputs": ["x"], "weights": weights((4, 6), (6,))},
        {"name": "relu", "kind": "ReLU", "inputs": ["d1"]},
        {"name": "d2", "kind": "Dense", "inputs": ["relu"], "weights": weights((6, 6), (6,))},
        {"name": "add", "kind": "Add", "inputs": ["d2", "d1"]},
        {"name": "soft", "kind": "Softmax", "inputs": ["add"]},
    ]
    path = tmp_path / "model.json"
    data = {"class_name": "FakeModel", "input": [None, 4], "output": [None, 6], "layers": layers}
    path.write_text(json.dumps(data))
    return path


@pytest.fixture
def fake_data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    path = tmp_path / "data.npz"
    np.savez(path, x=rng.normal(size=(20, 4)).astype("float32"), y=rng.integers(0, 6, 20))
    return path


@pytest.fixture(scope="session")
def real_pool() -> Iterator[Pool]:
    """One worker per real backend, for all tests that need frameworks."""
    with Pool([BUILT_IN[name] for name in REAL]) as pool:
        for name, run in pool.start().items():
            assert run.ok, f"{name}: {run.message}\n{run.detail}"
        yield pool


@pytest.fixture(scope="session")
def keras_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build and save a Keras model in a process of its own, from a snippet that sets `model`."""
    import subprocess
    import sys

    def build(snippet: str, suffix: str = ".keras", after: str = "") -> Path:
        path = tmp_path_factory.mktemp("model") / f"model{suffix}"
        code = (
            "import keras, numpy as np\nfrom keras import layers, ops\n"
            f"keras.utils.set_random_seed(0)\n{snippet}\nmodel.save({str(path)!r})\n{after}"
        )
        env = {"KERAS_BACKEND": "jax", "PATH": "", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return path

    return build
