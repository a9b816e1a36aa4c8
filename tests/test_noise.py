"""The noise floor: what measures rounding, and what must not pass for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from outvote.bench.noise import NoiseFloor, measure_noise, nudged
from outvote.bench.reading import read_model
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.case import Data
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run
from outvote.core.truth import Truth
from outvote.judge.compare import Settings, compare
from outvote.judge.distances import noise_of
from outvote.run.pool import Pool, Request

MODEL = Model(
    "m",
    (Input("x", (None, 2), "float32"),),
    (Layer("a", "ReLU", {}, args=[{"$ref": ["x", 0]}]),),
    (Ref("a"),),
    "keras",
)


class Moved:
    """Stands for a pool whose only worker gives the same outputs for every probe."""

    def __init__(self, plain: list[list[float]], moved: list[list[float]]) -> None:
        self.plain = np.array(plain, "float32")
        self.moved = np.array(moved, "float32")
        self.blobs = self

    def put(self, array: Any) -> str:
        return "digest"

    def ask_each(self, names: Any, requests: list[Request]) -> list[dict[str, Run]]:
        arrays = [
            self.plain if request.arguments["jitter"] is None else self.moved
            for request in requests
        ]
        return [{"a": Run("a", Outcome.OK, {}, (array,))} for array in arrays]


def outputs(values: list[list[float]]) -> Outputs:
    return Outputs((np.array(values, "float32"),), ("float32",))


def floor(plain: list[list[float]], moved: list[list[float]]) -> NoiseFloor:
    data = Data((np.zeros((len(plain), 2), "float32"),), None, "", (0,))
    indices = list(range(len(plain)))
    found = measure_noise(
        cast(Pool, Moved(plain, moved)), MODEL, data, indices, {"a": outputs(plain)}, ["a"]
    )
    assert found is not None
    return found


@pytest.mark.parametrize("jump", [np.inf, -np.inf, np.nan])
def test_a_jump_to_infinity_or_nan_explains_no_difference(jump: float) -> None:
    plain = [[1.0, 2.0], [1.0, 2.0]]
    noise = floor(plain, [[1.0, jump], [1.0, 2.0000002]])
    assert noise.movement[0][0] == 0
    assert 0 < noise.movement[0][1] < 1e-6
    pair = {"a": outputs(plain), "b": outputs([[1.0, 3.0], [1.0, 2.0]])}
    apart = compare(("a", "b"), pair["a"], pair["b"], Truth(), Settings())
    assert not noise.explains(apart, pair, 10.0)


def test_a_result_that_depends_on_the_batch_is_not_noise() -> None:
    """The first run had other inputs beside these; the probes are held against each other."""
    pool = Moved([[1.0, 2.0]], [[1.0, 2.0]])
    data = Data((np.zeros((1, 2), "float32"),), None, "", (0,))
    earlier = {"a": outputs([[1.0, 9.0]])}
    found = measure_noise(cast(Pool, pool), MODEL, data, [0], earlier, ["a"])
    assert found is not None
    assert found.largest() == 0


def test_who_errs_does_not_raise_the_noise_that_excuses_it() -> None:
    assert noise_of({"a": [1e-7, 5e-8], "b": [0.5, 0.1]}) == 1e-7
    assert noise_of({"a": [0.5], "b": [1e-7], "c": [2e-7]}) == 2e-7
    assert noise_of({"a": [1e-7, np.inf, np.nan]}) == 1e-7
    rows = {"a": np.array([1e-7, 0.5]), "b": np.array([0.5, 2e-7]), "c": np.array([3e-7, 3e-7])}
    assert noise_of({name: [row] for name, row in rows.items()}).tolist() == [3e-7, 3e-7]


def test_exact_zeros_are_not_moved() -> None:
    array = np.array([[0.0, 1.0, -2.0], [0.0, 0.0, 3.0]], "float32")
    moved = nudged(array, np.random.default_rng(0))
    assert (moved[array == 0] == 0).all()
    assert (moved[array != 0] != array[array != 0]).all()


@pytest.mark.frameworks
def test_a_nan_in_one_instance_moves_no_other(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    path = keras_file("model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])")
    model, _ = read_model(real_pool, path, None, [real_pool.targets["jax"]])
    x = np.array([[1, 2, 3], [np.nan, 1, 2], [np.inf, 1, 2], [0, 0, 0]], "float32")
    arguments = {"model": model.to_json(), "inputs": [real_pool.blobs.put(x)], "batch": 4}
    for name in ("torch", "numpy"):
        plain = real_pool.ask(name, Request("run", arguments)).arrays[0]
        moved = real_pool.ask(name, Request("run", {**arguments, "jitter": 1})).arrays[0]
        assert 0 < np.abs(plain[0] - moved[0]).max() < 1e-5
        assert np.isnan(moved[1]).all()


@pytest.mark.frameworks
def test_outputs_that_are_all_noise_are_no_silent_agreement(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """A random number generator, poorly: digits that rounding decides become the answer."""
    path = keras_file("""
x = keras.Input((64,))
y = layers.LayerNormalization(name="mix")(layers.Activation("gelu")(x))
model = keras.Model(x, ops.sin(layers.Rescaling(1e8, name="loud")(y)))
""")
    targets = tuple(real_pool.targets[name] for name in ("torch", "numpy"))
    checked = check_in(real_pool, Job(path, targets))
    assert checked.verdict == "consistent"
    assert len(checked.warnings) == 1
    assert "chaotic or draws random numbers" in checked.warnings[0]


@pytest.mark.frameworks
def test_random_moves_that_cancel_do_not_hide_the_noise(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    """One number all the way, and a last layer that subtracts nearly what it gets."""
    path = keras_file("""
x = keras.Input((1,))
y = layers.Flatten()(layers.Activation("tanh")(layers.Activation("linear")(x)))
model = keras.Model(x, layers.Dense(3)(y))
model.layers[-1].set_weights([
    np.float32([[1.9175156, -2.0147355, 9.767107]]),
    np.float32([-0.2407241, 0.25292903, -1.2261584]),
])
""")
    targets = tuple(real_pool.targets[name] for name in ("tensorflow", "torch", "numpy"))
    data = {"x": np.array([[0.12573022]], "float32")}
    checked = check_in(real_pool, Job(path, targets, data=data))
    assert checked.verdict == "consistent", [finding.title for finding in checked.findings]
    assert checked.noise is not None
    assert checked.noise.largest() > 1e-5
