"""The noise floor: what measures rounding, and what must not pass for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from conftest import fake
from outvote.bench.noise import NoiseFloor, measure_noise, nudged
from outvote.bench.reader import read_model
from outvote.commands.check.job import Job
from outvote.commands.check.run import check_in
from outvote.core.arrays import Array
from outvote.core.case import Case, Data
from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import Ran, RunModel
from outvote.core.target import Outcome, Run
from outvote.core.truth import Truth
from outvote.judge.compare import Comparison, Settings, compare
from outvote.judge.distances import noise_of
from outvote.run.pool import Pool

MODEL = Model(
    "m",
    (Input("x", (None, 2), "float32"),),
    (Layer("a", "ReLU", {}, args=[{"$ref": ["x", 0]}]),),
    (Ref("a"),),
    "keras",
)
SETTINGS = Settings()


class Moved:
    """Stands for a pool whose workers give the same outputs for every probe."""

    def __init__(self, plain: Any, moved: Any) -> None:
        self.plain, self.moved = np.array(plain, "float32"), np.array(moved, "float32")
        self.blobs = self
        self.targets = {"a": fake("a"), "b": fake("b")}
        self.asked: list[tuple[int | None, int]] = []  # seed, inputs

    def put(self, array: Any) -> str:
        self.rows = array[:, 0].astype(int)  # an input holds its own number
        return "digest"

    def ask_each(self, names: Any, requests: list[RunModel]) -> list[dict[str, Run]]:
        found = []
        for request in requests:
            seed = request.jitter
            self.asked.append((seed, len(self.rows)))
            array = (self.plain if seed is None else self.moved)[self.rows]
            reply = Ran(outputs=Outputs((array,), ("float32",)))
            found.append({n: Run(n, Outcome.OK, reply) for n in names})
        return found


def outputs(values: Any) -> Outputs:
    return Outputs((np.array(values, "float32"),), ("float32",))


def raised(values: Array, by: float) -> Array:
    """With the second number of every row larger."""
    found: Array = values + np.array([0.0, by])
    return found


def case(count: int) -> Case:
    numbers = np.repeat(np.arange(count, dtype="float32")[:, None], 2, axis=1)
    return Case(MODEL, [(None, 2)], Data((numbers,), None, "", (0,)), Truth())


def floor(
    plain: Any, moved: Any, other: Any, settings: Settings = SETTINGS, batch: int = 32
) -> tuple[NoiseFloor, Comparison, dict[str, Outputs], Moved]:
    """The noise where `moved` is what probes give, for a pair that gives `plain` and `other`."""
    pool = Moved(plain, moved)
    pair = {"a": outputs(plain), "b": outputs(other)}
    apart = compare(("a", "b"), pair["a"], pair["b"], Truth(), settings)
    found = measure_noise(cast(Pool, pool), case(len(plain)), pair, [apart], ["a"], settings, batch)
    assert found is not None
    return found, apart, pair, pool


@pytest.mark.parametrize("jump", [np.inf, -np.inf, np.nan])
def test_a_jump_to_infinity_or_nan_explains_no_difference(jump: float) -> None:
    plain = [[1.0, 2.0], [1.0, 2.0]]
    moved = [[1.0, jump], [1.0, 2.0000002]]
    noise, apart, pair, _ = floor(plain, moved, [[1.0, 3.0], [1.0, 3.0]])
    found = noise.rounding.noise[0]
    assert (found[0, 0], found[0, 1] > 0, found[0, 1] < 1e-6) == (0, True, True)
    assert noise.explained([apart], pair) == set()


def test_rounding_on_the_worst_inputs_excuses_no_other() -> None:
    """Three inputs are ill-conditioned and farthest apart; on the other seven there is a fault."""
    plain = np.tile([1.0, 2.0], (10, 1))
    moved, other = plain.copy(), plain.copy()
    moved[:3, 1] += 0.5
    other[:3, 1] += 1.0
    other[3:, 1] += 0.1
    noise, apart, pair, _ = floor(plain, moved, other)
    assert noise.explained([apart], pair) == set()
    assert noise.left(apart, pair) == (3, 4, 5, 6, 7, 8, 9)
    # Without the fault on the others, the same three are rounding.
    other[3:] = plain[3:]
    noise, apart, pair, _ = floor(plain, moved, other)
    assert noise.explained([apart], pair) == {("a", "b")}


def test_every_input_that_differs_is_measured_batch_by_batch() -> None:
    plain = np.tile([1.0, 2.0], (40, 1))
    moved, other = raised(plain, 0.5), raised(plain, 1.0)
    noise, apart, pair, pool = floor(plain, moved, other, batch=16)
    assert sorted(noise.inputs) == list(range(40))
    assert noise.explained([apart], pair) == {("a", "b")}
    assert [rows for seed, rows in pool.asked if seed is None] == [8, 16, 16]


def test_a_pair_that_is_settled_needs_no_more_inputs() -> None:
    """All inputs are at fault: the first, worst ones say so, and the others cost nothing."""
    plain = np.tile([1.0, 2.0], (40, 1))
    noise, apart, pair, _ = floor(plain, plain, raised(plain, 1.0))
    assert len(noise.inputs) == 8
    assert noise.explained([apart], pair) == set()


def test_an_input_that_was_not_measured_is_not_excused() -> None:
    plain = np.tile([1.0, 2.0], (2, 1))
    noise, apart, pair, _ = floor(plain, raised(plain, 0.5), raised(plain, 1.0))
    first = [found[:, :1] for found in noise.rounding.noise]
    some = NoiseFloor((0,), noise.rounding.with_noise(first))
    assert noise.explained([apart], pair) == {("a", "b")}
    assert some.left(apart, pair) == (1,)
    assert some.explained([apart], pair) == set()
    assert some.limit(1) is None


@pytest.mark.parametrize(("p", "explained"), [(0, False), (50, False), (60, True)])
def test_inputs_that_are_too_few_for_p_are_not_left(p: float, explained: bool) -> None:
    """All ten differ, rounding explains five: with p = 60 the other five are too few."""
    plain = np.tile([1.0, 2.0], (10, 1))
    moved = plain.copy()
    moved[:5, 1] += 0.5
    noise, apart, pair, _ = floor(plain, moved, raised(plain, 1.0), Settings(p=p))
    assert bool(noise.explained([apart], pair)) is explained


def test_where_it_is_close_more_probes_are_made() -> None:
    plain, moved = np.array([[1.0, 2.0]]), np.array([[1.0, 2.002]])
    for other, probes in (([[1.0, 2.01]], 3), ([[1.0, 2.1]], 12), ([[1.0, 3.0]], 3)):
        *_, pool = floor(plain, moved, other)  # 5, 50 and 500 times the noise
        assert len([seed for seed, _ in pool.asked if seed is not None]) == probes


def test_a_result_that_depends_on_the_batch_is_not_noise() -> None:
    """The first run had other inputs beside these; the probes are held against each other."""
    pool = Moved([[1.0, 2.0]], [[1.0, 2.0]])
    earlier = {"a": outputs([[1.0, 9.0]]), "b": outputs([[1.0, 2.0]])}
    apart = compare(("a", "b"), earlier["a"], earlier["b"], Truth(), SETTINGS)
    found = measure_noise(cast(Pool, pool), case(1), earlier, [apart], ["a"], SETTINGS, 8)
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
    for seed in (1, 0):
        moved = nudged(array, seed)
        assert (moved[array == 0] == 0).all()
        assert (moved[array != 0] != array[array != 0]).all()
    assert (np.abs(nudged(array, 0)) >= np.abs(array)).all()  # away from zero
    assert nudged(array, None) is array


@pytest.mark.frameworks
def test_a_nan_in_one_instance_moves_no_other(
    real_pool: Pool, keras_file: Callable[..., Path]
) -> None:
    path = keras_file("model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])")
    model, _ = read_model(real_pool, path, None, [real_pool.targets["jax"]])
    x = np.array([[1, 2, 3], [np.nan, 1, 2], [np.inf, 1, 2], [0, 0, 0]], "float32")
    request = RunModel(model=model, inputs=(real_pool.blobs.put(x),), batch=4)
    for name in ("torch", "numpy"):
        plain = real_pool.ask(name, request).reply.outputs.arrays[0]
        moved = real_pool.ask(name, replace(request, jitter=1)).reply.outputs.arrays[0]
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
