"""The performance oracle on workers that really get slower, leak, or are slow in one layer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.commands.fuzz.run import start
from outvote.dialects.keras.targets import BUILT_IN

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _often_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed is measured after every generation: short campaigns show a drift."""
    monkeypatch.setattr("outvote.campaign.campaign._CANARY", 8)


def findings_of(model: Path, data: Path, out: Path, misdeed: str, mutants: int = 72) -> list[Any]:
    """What a campaign with one bad worker reports."""
    targets = (fake("a"), fake("b"), fake("bad", misdeed))
    seeds = (SeedFile("seed", model, data),)
    start(FuzzJob(seeds, targets, budget=Budget(mutants=mutants), inputs=8, minimise=0.0), out)
    found: list[Any] = json.loads((out / "result.json").read_text())["findings"]
    return found


def test_a_worker_that_gets_ever_slower_is_named_with_its_layer_and_its_series(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    (finding,) = findings_of(fake_model, fake_data, tmp_path / "out", "slower:d1")
    assert (finding["kind"], finding["accused"]) == ("performance", "bad")
    assert finding["layer"] == "d1"
    assert "bad needs ever more time for the same model, in Dense layer 'd1'" in finding["title"]
    points = [line.split(": ") for line in finding["detail"].splitlines()[1:]]
    seconds = [float(value) for _, value in points]
    assert len(seconds) >= 8
    assert seconds[-1] > 3 * seconds[1]
    folder = tmp_path / "out" / "findings" / finding["fingerprint"]
    for text in (tmp_path / "out" / "report.html", folder / "report.md"):
        assert f"{points[0][0]}: {points[0][1]}" in text.read_text()  # the series is shown


def test_a_worker_that_leaks_is_named_with_its_series(
    fake_model: Path, fake_data: Path, tmp_path: Path
) -> None:
    (finding,) = findings_of(fake_model, fake_data, tmp_path / "out", "leak:d1")
    assert (finding["kind"], finding["accused"]) == ("performance", "bad")
    assert "bad needs ever more memory for the same model" in finding["title"]
    sizes = [float(line.split(": ")[1]) for line in finding["detail"].splitlines()[1:]]
    assert sizes == sorted(sizes)


SLOW_LAYER = """
import time
import keras

original = keras.layers.UnitNormalization.call

def call(self, inputs):
    time.sleep(0.6)
    return original(self, inputs)

keras.layers.UnitNormalization.call = call
"""

SEED = """
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="relu"),
                          keras.layers.Dense(4)])
"""


@pytest.mark.frameworks
def test_a_kind_of_layer_that_a_patch_makes_slow_is_found_by_mutants_and_named_once(
    keras_file: Callable[..., Path], tmp_path: Path
) -> None:
    """A campaign on JAX's released NumPy backend, and on one in which a kind of layer sleeps."""
    script = tmp_path / "slow_layer.py"
    script.write_text(SLOW_LAYER)
    slow = replace(BUILT_IN["numpy"], name="slow-numpy", setup=script)
    seeds = (SeedFile("seed", keras_file(SEED), None),)
    job = FuzzJob(
        seeds,
        (BUILT_IN["numpy"], slow),
        budget=Budget(mutants=400),
        inputs=4,
        rules=("LA", "GF", "WS", "LR"),
        seed=1,
    )
    found = [f for f in start(job, tmp_path / "out")["findings"] if f["kind"] == "performance"]
    (finding,) = found
    assert (finding["accused"], finding["layer_kind"]) == ("slow-numpy", "UnitNormalization")
    assert "in UnitNormalization layer" in finding["title"]
    told = re.search(r"compiled: numpy ([\d.e-]+) s, slow-numpy ([\d.]+)", finding["reason"])
    assert told is not None
    assert float(told[1]) < 0.6 <= float(told[2])
