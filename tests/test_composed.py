"""The gradients of a whole model are what those of its layers come to, on every library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do
from outvote.bench.reader import read_model
from outvote.core.dialect import dialect
from outvote.core.exercises import Pull, leaf_name
from outvote.core.train_protocol import PrepareTraining, PulledBack
from outvote.judge.compare import Settings
from outvote.localize.composed import is_composed
from outvote.run.pool import Pool

pytestmark = pytest.mark.frameworks

# A layer that is called twice, a tensor that three layers read, a regulariser, a mask, statistics.
MODEL = """
x = keras.Input((4, 6), name="x")
shared = layers.Dense(6, activation="relu", kernel_regularizer="l2", name="shared")
h = layers.BatchNormalization(name="normal")(shared(layers.Masking(name="mask")(x)))
h = layers.Add(name="add")([h, shared(h), layers.LSTM(6, return_sequences=True, name="lstm")(h)])
model = keras.Model(x, layers.Dense(2, name="last")(layers.Flatten(name="flat")(h)))
"""


@pytest.fixture(scope="module")
def whole(real_pool: Pool, keras_file: Callable[..., Path]) -> tuple[Bench, Exercised]:
    names = ["tensorflow", "jax", "torch"]
    model, _ = read_model(real_pool, keras_file(MODEL), None)
    run = real_pool.ask("torch", PrepareTraining(model=model))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 4, 6)).astype("float32"), rng.normal(size=(5, 2)).astype("float32")
    x[1:, 3] = 0  # masked
    loss = {"class_name": "MeanSquaredError"}
    pull = Pull(run.reply.model, (x,), loss=loss, truth=y, penalty=True)
    bench = Bench(real_pool, {n: real_pool.targets[n] for n in names}, Settings())
    return bench, do(bench, pull, names)


def test_gradients_are_what_those_of_layers_come_to(whole: tuple[Bench, Exercised]) -> None:
    bench, done = whole
    assert len(done.replies) == 3
    assert is_composed(bench, done, dialect("keras").lesson.is_regularised)


@pytest.mark.parametrize("leaf", ["x", "shared/kernel", "normal/gamma", "lstm/bias"])
def test_a_gradient_that_is_not_is_told(whole: tuple[Bench, Exercised], leaf: str) -> None:
    bench, done = whole
    replies = {**done.replies, "jax": spoilt(done.replies["jax"], leaf)}
    regularised = dialect("keras").lesson.is_regularised
    assert not is_composed(bench, replace(done, replies=replies), regularised)


def spoilt(reply: PulledBack, name: str) -> PulledBack:
    """With one gradient that is a thousandth too large."""
    found = [leaf for leaf in reply.gradients if leaf_name(leaf) == name]
    assert len(found) == 1, [leaf_name(leaf) for leaf in reply.gradients]
    assert found[0].array is not None
    wrong = replace(found[0], array=found[0].array * np.float32(1.001))
    return replace(reply, gradients=tuple(wrong if x is found[0] else x for x in reply.gradients))
