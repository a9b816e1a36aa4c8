"""What workers answer about training, held against formulas in NumPy (core/train_protocol.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from conftest import joined
from outvote.core.arrays import Array
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.target import Outcome
from outvote.core.train_protocol import (
    ApplyGradients,
    Move,
    PrepareTraining,
    PullBack,
    PulledBack,
    TrainSteps,
)
from outvote.dialects.keras.targets import BUILT_IN
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks

EAGER = ("tensorflow", "jax", "torch")
COMPILED = ("tensorflow:graph", "jax:jit")
MSE = {"class_name": "MeanSquaredError"}
SGD = {"class_name": "SGD", "config": {"learning_rate": 0.5}}
RNG = np.random.default_rng(0)
X, C = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 3))
KERNEL, BIAS = RNG.normal(size=(4, 3)), RNG.normal(size=3)


@pytest.fixture(scope="module")
def pool(real_pool: Pool) -> Iterator[Pool]:
    with joined(real_pool, *(BUILT_IN[name] for name in COMPILED)) as running:
        yield running


def put(pool: Pool, array: Array, wide: bool = False) -> str:
    return pool.blobs.put(array.astype("float64" if wide else "float32"))


def layer(pool: Pool, kind: str, weights: dict[str, Array], wide: bool, **config: object) -> Layer:
    told = {"dtype": "float64"} if wide else {}
    return Layer(
        kind.lower(),
        kind,
        {"name": kind.lower(), **told, **config},
        args=[{REF: ["x", 0]}],
        origin={"module": "keras.layers", "build": {"input_shape": [None, 4]}},
        weights=tuple(
            Weight(name, put(pool, value, wide), value.shape) for name, value in weights.items()
        ),
    )


def dense(pool: Pool, wide: bool = False, **config: object) -> Model:
    made = layer(pool, "Dense", {"kernel": KERNEL, "bias": BIAS}, wide, units=3, **config)
    x = Input("x", (None, 4), "float64" if wide else "float32")
    return Model("dense", (x,), (made,), (Ref("dense"),), "keras")


def normalising(pool: Pool) -> Model:
    start = {"gamma": 1.0, "beta": 0.0, "moving_mean": 0.5, "moving_variance": 2.0}
    weights = {name: np.full(4, value) for name, value in start.items()}
    made = layer(pool, "BatchNormalization", weights, False, momentum=0.75)
    x = Input("x", (None, 4), "float32")
    return Model("normal", (x,), (made,), (Ref("batchnormalization"),), "keras")


def pulled(pool: Pool, name: str, request: PullBack) -> tuple[PulledBack, dict[str, Array | None]]:
    run = pool.ask(name, request)
    assert run.ok, f"{run.message}\n{run.detail}"
    return run.reply, {leaf.name: leaf.array for leaf in run.reply.gradients}


def near(found: Array | None, exact: Array, wide: bool = False) -> None:
    assert found is not None
    assert found.shape == exact.shape
    assert found.dtype.name == ("float64" if wide else "float32")
    np.testing.assert_allclose(found, exact, *((1e-11, 1e-13) if wide else (2e-5, 2e-6)))


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
@pytest.mark.parametrize("wide", [False, True])
def test_a_layer_gives_its_vector_jacobian_product(pool: Pool, name: str, wide: bool) -> None:
    model = dense(pool, wide)
    request = PullBack(
        model=model,
        inputs=(put(pool, X, wide),),
        cotangents=(put(pool, C, wide),),
        exact=wide,
        moves=(Move("", 0, (0, 1), 2.0), Move("dense", 0, (1, 2), 3.0)),
    )
    reply, found = pulled(pool, name, request)
    x, kernel = X.copy(), KERNEL.copy()
    x[0, 1], kernel[1, 2] = 2.0, 3.0
    near(reply.beside[0].outputs.arrays[0], x @ KERNEL + BIAS, wide)
    near(reply.beside[1].outputs.arrays[0], X @ kernel + BIAS, wide)
    assert float(reply.beside[0].value) == pytest.approx((C * (x @ KERNEL + BIAS)).sum(), rel=1e-5)
    near(found["x"], C @ KERNEL.T, wide)
    near(found["kernel"], X.T @ C, wide)
    near(found["bias"], C.sum(axis=0), wide)
    near(reply.outputs.arrays[0], X @ KERNEL + BIAS, wide)


@pytest.mark.parametrize("name", EAGER)
def test_a_layer_that_is_told_no_type_is_wide_where_the_request_is_exact(
    pool: Pool, name: str
) -> None:
    """Also after it was asked for in float32: as an instrument it must not round to that."""
    for wide in (False, True, False):
        dtype = "float64" if wide else "float32"
        made = layer(pool, "ReLU", {}, wide=False)
        model = Model("relu", (Input("x", (None, 4), dtype),), (made,), (Ref("relu"),), "keras")
        given = put(pool, X, wide)
        request = PullBack(model=model, inputs=(given,), cotangents=(given,), exact=wide)
        reply, _ = pulled(pool, name, request)
        near(reply.outputs.arrays[0], np.maximum(X, 0), wide)


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_loss_and_penalty_are_differentiated_apart_and_together(pool: Pool, name: str) -> None:
    l2 = {"class_name": "L2", "config": {"l2": 0.25}, "module": "keras.regularizers"}
    model = dense(pool, kernel_regularizer={**l2, "registered_name": None})
    feeds, truth = (put(pool, X),), put(pool, C)
    apart = X @ KERNEL + BIAS - C
    loss, of_loss = (apart**2).mean(), 2 * X.T @ apart / apart.size
    penalty, of_penalty = 0.25 * (KERNEL**2).sum(), 0.5 * KERNEL
    for asked, value, kernel in (
        (PullBack(model=model, inputs=feeds, loss=MSE, truth=truth), loss, of_loss),
        (PullBack(model=model, inputs=feeds, penalty=True), penalty, of_penalty),
        (
            PullBack(model=model, inputs=feeds, loss=MSE, truth=truth, penalty=True),
            loss + penalty,
            of_loss + of_penalty,
        ),
    ):
        reply, found = pulled(pool, name, asked)
        assert float(reply.value) == pytest.approx(value, rel=1e-5)
        near(found["kernel"], kernel)


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_what_losses_keep_away_from_0_by_may_be_told(pool: Pool, name: str) -> None:
    """A chance of 0 for the true class; the next request has the usual border again."""
    chances = put(pool, np.array([[0.0, 1.0]]), wide=True)
    for border in (None, 2.0**-44, None):
        request = PullBack(
            model=Model("loss", (Input("p", (None, 2), "float64"),), (), (Ref("p"),), "keras"),
            inputs=(chances,),
            loss={"class_name": "CategoricalCrossentropy"},
            truth=put(pool, np.array([[1.0, 0.0]]), wide=True),
            exact=True,
            border=border,
        )
        reply, _ = pulled(pool, name, request)
        assert float(reply.value) == pytest.approx(-np.log(border or 1e-7), rel=1e-6)


@pytest.mark.parametrize("name", ["jax", "jax:jit"])
def test_what_jax_compiles_is_a_sign_of_life(pool: Pool, name: str) -> None:
    signs = []
    for count in (7, 11):  # of instances: sizes that nothing was compiled for
        x, c = (put(pool, np.ones((count, width))) for width in (4, 3))
        pulled(pool, name, PullBack(model=dense(pool), inputs=(x,), cotangents=(c,)))
        position = pool.position(name)
        assert position is not None
        signs.append(position.signs)
    assert signs[1] > signs[0] + 2  # each layer that is entered is one, too


@pytest.mark.parametrize("name", EAGER)
def test_every_layer_but_the_last_may_be_moved_by_a_last_place(pool: Pool, name: str) -> None:
    """Gradients move with them; what a loss reads is left as it is."""
    one = dense(pool)
    second = replace(layer(pool, "ReLU", {}, wide=False), args=[{REF: ["dense", 0]}])
    model = replace(one, layers=(*one.layers, second), outputs=(Ref("relu"),))

    def kernel(asked: Model, jitter: int | None) -> Array:
        feeds, given = (put(pool, X),), (put(pool, C),)
        request = PullBack(model=asked, inputs=feeds, cotangents=given, jitter=jitter)
        found = pulled(pool, name, request)[1]["kernel"]
        assert found is not None
        return found

    still, *moved = (kernel(model, seed) for seed in (None, 1, 2, 3, 4))
    for found in moved:
        assert 0 < np.abs(found - still).max() < 1e-5 * np.abs(still).max()
    assert any((found != moved[0]).any() for found in moved)
    np.testing.assert_array_equal(kernel(one, 1), kernel(one, None))


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_statistics_of_a_batch_are_told_and_learned_by_nobody(pool: Pool, name: str) -> None:
    run = pool.ask(EAGER[0], PrepareTraining(model=normalising(pool)))
    request = PullBack(model=run.reply.model, inputs=(put(pool, X),), cotangents=(put(pool, X**2),))
    for _ in range(2):  # the second begins where the first began
        told = {s.name: s.array for s in pulled(pool, name, request)[0].statistics}
        near(told["moving_mean"], 0.75 * 0.5 + 0.25 * X.mean(axis=0))
        near(told["moving_variance"], 0.75 * 2.0 + 0.25 * X.var(axis=0))


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_an_optimiser_is_fed_with_given_gradients(pool: Pool, name: str) -> None:
    config = {"learning_rate": 0.5, "momentum": 0.5, "clipvalue": 1.0}
    request = ApplyGradients(
        optimizer={"class_name": "SGD", "config": config},
        weights=(put(pool, KERNEL),),
        gradients=((put(pool, 4 * KERNEL),), (put(pool, KERNEL),)),
    )
    run = pool.ask(name, request)
    assert run.ok, run.message
    velocity = -0.5 * np.clip(4 * KERNEL, -1, 1)
    near(run.reply.weights[0][0], KERNEL + velocity)
    second = 0.5 * velocity - 0.5 * np.clip(KERNEL, -1, 1)
    near(run.reply.weights[1][0], KERNEL + velocity + second)
    (memory,) = (leaf.array for leaf in run.reply.memory if "momentum" in leaf.name)
    near(memory, second)


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_an_optimiser_that_scales_losses_halves_its_scale_at_an_infinity(
    pool: Pool, name: str
) -> None:
    """With JAX it is only updated by values, as Keras' trainer does."""
    scaling = {"inner_optimizer": {"module": "keras.optimizers", **SGD}, "initial_scale": 4.0}
    infinite = np.where(np.arange(12).reshape(4, 3) == 5, np.inf, KERNEL)
    request = ApplyGradients(
        optimizer={"class_name": "LossScaleOptimizer", "config": scaling},
        weights=(put(pool, KERNEL),),
        gradients=((put(pool, 4 * KERNEL),), (put(pool, infinite),), (put(pool, KERNEL),)),
    )
    run = pool.ask(name, request)
    assert run.ok, run.message
    for step, left in enumerate((0.5, 0.5, 0.25)):
        near(run.reply.weights[step][0], left * KERNEL)
    (scale,) = (leaf.array for leaf in run.reply.memory if leaf.name == "dynamic_scale")
    assert scale == 2


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_an_optimiser_computes_in_float64_where_its_weights_are(pool: Pool, name: str) -> None:
    """Adam: also what it makes of numbers of Python, which Keras' casts would narrow."""
    gradient = RNG.normal(size=(4, 3))
    request = ApplyGradients(
        optimizer={"class_name": "Adam"},
        weights=(put(pool, np.zeros((4, 3)), wide=True),),
        gradients=((put(pool, gradient, wide=True),),),
    )
    run = pool.ask(name, request)
    assert run.ok, run.message
    rate = 0.001 * np.sqrt(1 - 0.999) / (1 - 0.9)
    step = rate * 0.1 * gradient / (np.sqrt(0.001 * gradient**2) + 1e-7)
    near(run.reply.weights[0][0], -step, wide=True)


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_gradients_of_rows_and_constraints_reach_the_optimiser(pool: Pool, name: str) -> None:
    positive = {"class_name": "NonNeg", "config": {}, "module": "keras.constraints"}
    request = ApplyGradients(
        optimizer=SGD,
        weights=(put(pool, X), put(pool, KERNEL)),
        gradients=((put(pool, X[:2]), put(pool, KERNEL)),),
        rows=(np.array([3, 3]), None),
        constraints=(None, {**positive, "registered_name": None}),
    )
    run = pool.ask(name, request)
    assert run.ok, run.message
    table = X.copy()
    table[3] -= 0.5 * (X[0] + X[1])
    near(run.reply.weights[0][0], table)
    near(run.reply.weights[0][1], np.maximum(0.5 * KERNEL, 0))


@pytest.mark.parametrize("name", [*EAGER, *COMPILED])
def test_steps_are_trained_as_the_library_does(pool: Pool, name: str) -> None:
    request = TrainSteps(
        model=dense(pool),
        inputs=(put(pool, X),),
        truth=put(pool, C),
        loss=MSE,
        optimizer=SGD,
        rounds=2,
    )
    run = pool.ask(name, request)
    assert run.ok, run.message
    kernel, bias = KERNEL, BIAS
    for loss, leaves in zip(run.reply.losses, run.reply.weights, strict=True):
        apart = X @ kernel + bias - C
        assert loss == pytest.approx((apart**2).mean(), rel=1e-5)
        kernel = kernel - X.T @ apart / apart.size
        bias = bias - apart.sum(axis=0) / apart.size
        told = {leaf.name: leaf.array for leaf in leaves}
        near(told["kernel"], kernel)
        near(told["bias"], bias)


def test_what_draws_random_numbers_is_stilled_or_named(pool: Pool) -> None:
    def named(kind: str, **config: object) -> Layer:
        return layer(pool, kind, {}, False, **config)

    noisy = (named("Dropout", rate=0.5), named("GaussianNoise", stddev=0.1), named("ReLU"))
    # What resizes is an augmentation too: it draws nothing.
    told = [named("RandomFlip"), named("Resizing", height=2, width=2)]
    augment = [replace(one, kwargs={"training": False}) for one in told]
    model = replace(dense(pool), layers=(*noisy, *augment), outputs=(Ref("relu"),))
    reply = pool.ask("jax", PrepareTraining(model=model)).reply
    assert reply.stilled == ("dropout", "gaussiannoise")
    assert reply.drawing == ("randomflip",)
    assert [item.config.get("rate", item.config.get("stddev")) for item in reply.model.layers] == [
        *(0.0, 0.0),
        *(None, None, None),
    ]
    assert reply.model.layers[0].kwargs == {"training": True}
    assert reply.model.layers[2].kwargs == {}


def test_a_target_without_gradients_says_so_and_declares_none(pool: Pool) -> None:
    run = pool.ask("numpy", PullBack(model=dense(pool), inputs=(put(pool, X),), penalty=True))
    assert run.outcome is Outcome.UNSUPPORTED
    assert "has no gradients" in run.message
    able = {name for name, target in BUILT_IN.items() if target.can("pullback")}
    assert {*EAGER, *COMPILED} <= able
    assert not able & {"numpy", "openvino", "tensorflow:predict", "fake"}


def test_nothing_to_differentiate_is_refused(pool: Pool) -> None:
    run = pool.ask("jax", PullBack(model=dense(pool), inputs=(put(pool, X),)))
    assert run.refused
    assert "nothing to differentiate" in run.message
