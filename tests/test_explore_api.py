"""Exploring, coverage and pollution from Python, on the workers of the session."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import outvote
from outvote.core.errors import UsageError
from outvote.run.pool import Pool
from test_explore_uses import BARS, bars, data, three_models


@dataclass
class Live:
    """What the functions know of a model in memory: it can be saved."""

    file: Path

    def save(self, path: Path) -> None:
        shutil.copy(self.file, path)


@pytest.fixture
def workers(real_pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions use the workers of the session instead of starting their own."""
    for module in ("explore.explore", "commands.coverage.run", "commands.pollution.run"):
        monkeypatch.setattr(
            f"outvote.{module}.LocalPool", lambda *given, **more: nullcontext(real_pool)
        )


@pytest.mark.frameworks
@pytest.mark.usefixtures("workers")
def test_models_are_explored_and_the_inputs_come_back(
    keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    models: list[Any] = list(three_models(keras_file))
    models[0] = Live(models[0])
    x = data(20)["x"]
    found = outvote.explore_models(models, x, constraint="none", target="torch", out=tmp_path)
    assert isinstance(found, outvote.Exploration)
    assert not found.consistent
    total = found.data["differences"]["total"]
    assert found.data["differences"]["confirmed_on"] == "jax"
    assert len(found.inputs[0]) == len(found.seed) == len(found.label) == total > 0
    assert found.summary.startswith(f"{total} of 20 seeds led to inputs")
    with np.load(tmp_path / "inputs.npz") as saved:
        assert np.array_equal(saved["x"], found.inputs[0])
        assert np.array_equal(saved["label"], found.label)
    assert (tmp_path / "report.html").exists()
    same = outvote.explore_models([models[1]] * 2, x[:3], iterations=1, confirm_on="none")
    assert (same.consistent, same.inputs, len(same.seed)) == (True, [], 0)


@pytest.mark.frameworks
@pytest.mark.usefixtures("workers")
def test_coverage_and_pollution(keras_file: Callable[..., Path]) -> None:
    (model, *_) = three_models(keras_file)
    measured = outvote.measure_coverage(model, data(5)["x"], threshold=0.5, train=data(9)["x"])
    assert measured.data["coverage"]["criteria"]["k_multisection"] is not None
    assert measured.data["settings"]["threshold"] == 0.5
    clean, polluted = (keras_file(BARS.format(bias=b)) for b in (0.0, -4.0))
    rng = np.random.default_rng(0)
    x = np.concatenate([bars(rng, 40, True), bars(rng, 50, False)])
    y = np.repeat([0, 1], [40, 50])
    y[:12] = 1
    result = outvote.find_pollution(clean, polluted, x, y, count=60, step=10)
    assert set(result.data["suspects"]) == set(range(12))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: outvote.explore_models("a.keras", x), "expected a list of models"),
        (lambda x: outvote.explore_models([], x), "received an empty list"),
        (lambda x: outvote.explore_models(["a.keras"], x), "models are held against each other"),
        (lambda x: outvote.explore_models([1, 2], x), "expected a Keras model or the path"),
        (
            lambda x: outvote.explore_models(["a", "b"], x, steps=3),  # type: ignore[call-arg]
            "there is no setting 'steps'",
        ),
        (lambda x: outvote.explore_models(["a", "b"], x, target="numpy"), "no gradients to follow"),
        (lambda x: outvote.measure_coverage("a.keras", x), "a.keras does not exist"),
        (lambda x: outvote.find_pollution("a.keras", "b.keras", x, x), "a.keras does not exist"),
    ],
)
def test_a_wrong_call_is_told(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(np.zeros((2, 3)))
