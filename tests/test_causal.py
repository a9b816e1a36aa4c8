"""Causal localisation: Algorithm 2 on functions known by hand, and on planted faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.cli import main
from outvote.commands.localize.job import LocalizeJob
from outvote.commands.localize.run import localize_in
from outvote.commands.localize.run import run as run_localize
from outvote.commands.nan.job import NanJob
from outvote.commands.nan.run import run as run_nan
from outvote.core.outputs import Outputs
from outvote.localize.causal import Accident, Effect, causes, change_rate
from outvote.run.pool import Pool
from outvote.search.genetic import GeneticSettings

ALTERNATIVES: dict[str, list[Any]] = {
    "padding": ["valid"],
    "kernel_size": [3, 1, 2, 7],
    "filters": [1, 2],
    "n": [],
}
NOW = {"padding": "same", "kernel_size": 4, "filters": 5, "n": 1}


def others(name: str, value: Any) -> Sequence[Any]:
    return ALTERNATIVES[name]


def test_parameters_whose_change_cures_are_causes() -> None:
    """Wrong only for padding "same" with an even kernel: both are named, filters is not."""

    def measure(name: str, value: Any) -> Effect:
        layer = {**NOW, name: value}
        return Effect(1e5 if layer["padding"] == "same" and layer["kernel_size"] % 2 == 0 else 0.3)

    found, accidents = causes(NOW, others, measure)
    assert [(c.parameter, c.value, c.cured_by, c.tried) for c in found] == [
        ("padding", "same", ("valid",), 1),
        ("kernel_size", 4, (3, 1, 7), 4),
    ]
    assert accidents == []


def test_a_fault_of_the_kind_has_no_parameter_and_t2_decides() -> None:
    assert causes(NOW, others, lambda name, value: Effect(2.0))[0] == []
    found, _ = causes(NOW, others, lambda name, value: Effect(2.0), t2=3.0)
    assert {cause.parameter for cause in found} == {"padding", "kernel_size", "filters"}
    assert causes(NOW, others, lambda name, value: Effect(float("nan")))[0] == []


def test_a_cure_by_chance_is_no_cause() -> None:
    """One value of four hides the difference: fewer than half."""
    found, _ = causes(NOW, others, lambda name, value: Effect(0.0 if value == 7 else 9.0))
    assert found == []


def test_crashes_on_the_way_are_told_and_impossible_layers_are_not() -> None:
    def measure(name: str, value: Any) -> Effect | None:
        return Effect(0.0, "crash") if value == "valid" else None

    assert causes(NOW, others, measure) == ([], [Accident("padding", "valid", "crash")])


def outputs(*values: float) -> Outputs:
    return Outputs((np.array([values], np.float32),), ("float32",))


def test_the_change_rate_is_that_of_the_paper_with_an_epsilon_that_grows() -> None:
    assert change_rate(outputs(1.0, 0.0), outputs(0.0, 0.0)) == pytest.approx(0.5 / 1e-7)
    large = change_rate(outputs(1e6, 1e6), outputs(1e6 + 1, 1e6 + 1))
    assert large == pytest.approx(1 / (1e-7 * 1e6), rel=0.01)
    assert change_rate(outputs(1.0), outputs(1.0 + 1e-6), tolerance=1e-5) == 0.0
    assert change_rate(outputs(1.0), outputs(np.nan)) == np.inf
    assert change_rate(outputs(1.0), outputs(1.0, 2.0)) == np.inf


@pytest.fixture
def dense_model(fake_model: Path) -> Path:
    """The fake model with parameters, and with a layer more that is like `d2`, but not `d1`."""
    data = json.loads(fake_model.read_text())
    second = next(layer for layer in data["layers"] if layer["name"] == "d2")
    data["layers"].insert(3, {**second, "name": "d3", "inputs": ["d2"]})
    data["layers"][4]["inputs"] = ["d3", "d1"]
    for layer in data["layers"]:
        if layer["kind"] == "Dense":
            layer["config"] = {"units": 6}
    fake_model.write_text(json.dumps(data))
    return fake_model


@pytest.mark.slow
def test_a_whole_case_on_fake_targets(dense_model: Path, fake_data: Path, tmp_path: Path) -> None:
    """The fault is in the kind, whatever its parameter: the layers are named, and no parameter."""
    job = LocalizeJob(dense_model, (fake("a"), fake("bad", "lie:Dense")), fake_data, out=tmp_path)
    result = run_localize(job)
    (pair,) = result["pairs"]
    assert pair["targets"] == ["a", "bad"]
    told = [(s["layer"], s["causes"], s["same_as"]) for s in pair["suspects"]]
    assert told == [("d1", [], None), ("d2", [], None), ("d3", [], "d2")]
    assert "no single parameter" in result["summary"]
    assert pair["cradle"]
    page = (tmp_path / "report.html").read_text()
    assert "no single parameter" in page
    assert "third quartile" in page
    quiet = run_localize(LocalizeJob(dense_model, (fake("a"), fake("b")), fake_data))
    assert (quiet["verdict"], quiet["pairs"][0]["suspects"]) == ("consistent", [])


def test_bad_requests_are_one_sentence(
    dense_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(*arguments: str) -> str:
        assert main(list(arguments)) == 2
        text = capsys.readouterr().err
        assert "Traceback" not in text
        return text

    assert "holds no case" in says("localize", str(tmp_path))
    assert "--t2 must be below --t1" in says("localize", str(dense_model), "--t2", "5000")
    assert "needs two targets" in says("localize", str(dense_model), "--targets", "fake")
    assert "does not exist" in says("localize", "missing.keras", "--targets", "fake,numpy")
    assert "is a time" in says("nan", str(dense_model), "--budget", "500")
    assert "choose an eager target" in says("nan", str(dense_model), "--target", "jax:jit")


def test_nan_is_hunted_on_one_target_and_the_layer_is_named(
    dense_model: Path, tmp_path: Path
) -> None:
    data = tmp_path / "big.npz"
    np.savez(data, x=np.full((2, 4), 3e37, np.float32))
    genetic = GeneticSettings(noise=5.0)
    job = NanJob(
        dense_model, fake("a"), data, "IN", seconds=20.0, genetic=genetic, out=tmp_path / "out"
    )
    result = run_nan(job)
    assert (result["failure"], result["verdict"]) == ("nan", "inconsistent")
    assert result["first_overflow"] in ("d1", "d2")
    named = {layer["layer"]: layer for layer in result["layers"]}
    assert named[result["first_nan"]]["nans"] > 0
    assert result["first_nan"] in result["summary"]
    assert (tmp_path / "out" / "nan" / "inputs.npz").is_file()
    assert result["first_overflow"] in (tmp_path / "out" / "report.html").read_text()
    calm = NanJob(dense_model, fake("a"), None, "IN-WT", seconds=0.1)
    assert run_nan(calm)["failure"] is None


@pytest.mark.frameworks
@pytest.mark.parametrize(
    ("snippet", "expected"),
    [
        (
            'layers.Conv2D(4, 4, padding="same", activation="relu", name="wrong"),',
            {"padding", "kernel_size"},
        ),
        ('layers.AveragePooling2D(3, 2, padding="same", name="wrong"),', {"padding"}),
    ],
)
def test_planted_faults_are_put_down_to_their_parameters(
    real_pool: Pool,
    keras_file: Callable[..., Path],
    tmp_path: Path,
    snippet: str,
    expected: set[str],
) -> None:
    """CRADLE's padding bugs, as examples/faults plants them in JAX, against the released JAX."""
    model = keras_file(
        "model = keras.Sequential([keras.Input((8, 8, 3)), layers.Rescaling(0.5),"
        f" {snippet} layers.Flatten(), layers.Dense(3, name='end')])"
    )
    targets = tuple(real_pool.targets[name] for name in ("jax", "planted-jax"))
    result = localize_in(real_pool, LocalizeJob(model, targets))
    (pair,) = result["pairs"]
    (suspect,) = pair["suspects"]
    assert suspect["layer"] == "wrong"
    named = {cause["parameter"] for cause in suspect["causes"]}
    assert named >= expected
    # The planted faults depend on what makes the padding odd, and on nothing else.
    assert not named & {"filters", "use_bias", "activation", "groups"}
    assert "wrong" in pair["cradle"]
