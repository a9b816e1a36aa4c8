"""Our own formulas of optimisers, against what they must be, and against a library in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outvote.bench.bench import Bench
from outvote.bench.exercise import do_wide
from outvote.core.exercises import Update
from outvote.dialects.keras.updates import FORMULAS, exact_update
from outvote.judge.compare import Settings
from outvote.run.pool import Pool

RNG = np.random.default_rng(0)
WEIGHTS = (RNG.normal(size=(4, 3)), RNG.normal(size=3))
STEPS = tuple((RNG.normal(size=(4, 3)), RNG.normal(size=3)) for _ in range(3))
# Parameters that change more than a factor.
MORE: dict[str, tuple[dict[str, Any], ...]] = {
    "SGD": ({"momentum": 0.9, "nesterov": True, "weight_decay": 0.05},),
    "RMSprop": ({"centered": True, "momentum": 0.9},),
    "Adam": (
        {"amsgrad": True, "clipnorm": 0.1},
        {"use_ema": True, "ema_overwrite_frequency": 2, "global_clipnorm": 0.1},
        {"loss_scale_factor": 8.0, "clipvalue": 0.1},
    ),
    "Ftrl": (
        {
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.2,
            "l2_shrinkage_regularization_strength": 0.1,
            "beta": 0.5,
        },
    ),
}
NAMES = (
    *("SGD", "RMSprop", "Adam", "AdamW", "Adamax", "Nadam", "Adagrad", "Adadelta", "Ftrl"),
    *("Lion", "Lamb"),
)


def named(kind: str, **config: Any) -> dict[str, Any]:
    head = {"module": "keras.optimizers", "class_name": kind, "registered_name": None}
    return {**head, "config": config}


def exact(kind: str, **config: Any) -> tuple[np.ndarray[Any, Any], ...]:
    found = exact_update(Update(named(kind, **config), WEIGHTS, STEPS))
    assert found is not None
    return found


def test_what_no_formula_reads_is_not_covered() -> None:
    assert exact_update(Update(named("Adam", something=1), WEIGHTS, STEPS)) is None
    assert exact_update(Update(named("Adafactor"), WEIGHTS, STEPS)) is None
    held = ({"class_name": "NonNeg"}, None)
    assert exact_update(Update(named("SGD"), WEIGHTS, STEPS, constraints=held)) is None
    schedule = {"class_name": "CosineDecay", "config": {}}
    assert exact_update(Update(named("SGD", learning_rate=schedule), WEIGHTS, STEPS)) is None


def test_rows_that_are_named_twice_are_added_up_before_anything_else() -> None:
    rows, whole = np.array([0, 2, 2]), np.zeros((4, 3))
    some = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5]])
    whole[0], whole[2] = some[0], 1.5
    optimizer = named("Adagrad", clipvalue=1.2)
    few = exact_update(Update(optimizer, WEIGHTS[:1], ((some,),), (rows,)))
    assert few is not None
    np.testing.assert_array_equal(
        few, exact_update(Update(optimizer, WEIGHTS[:1], ((whole,),))) or ()
    )
    np.testing.assert_array_equal(few[0][1], WEIGHTS[0][1])
    assert not np.array_equal(few[0][2], WEIGHTS[0][2])


def test_schedule_free_keeps_z_and_x_apart() -> None:
    """The paper's own three sequences; the weight is y, and z is read before it moves."""
    x = z = WEIGHTS[0]
    v, rate, beta = np.zeros_like(x), 0.5, 0.9
    found = exact("ScheduleFreeAdamW", learning_rate=rate)
    for t, (g, _) in enumerate(STEPS, 1):
        v = 0.999 * v + 0.001 * g**2
        z = z - rate * g / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        x = (1 - 1 / t) * x + z / t
        np.testing.assert_allclose(found[2 * (t - 1)], (1 - beta) * z + beta * x, rtol=1e-12)


@pytest.mark.frameworks
def test_a_library_gives_what_the_formulas_give(real_pool: Pool) -> None:
    """But for ScheduleFreeAdamW, which is wrong wherever a variable's value is a live reference."""
    bench = Bench(real_pool, dict(real_pool.targets), Settings())
    assert {name.lower() for name in NAMES} == FORMULAS.keys() - {"schedulefreeadamw"}
    for kind in NAMES:
        for config in ({}, *MORE.get(kind, ())):
            update = Update(named(kind, **config), WEIGHTS, STEPS)
            told = do_wide(bench, update, ["torch"]).outputs("weights")["torch"]
            for right, given in zip(exact(kind, **config), told.arrays, strict=False):
                np.testing.assert_allclose(given, right, rtol=1e-7, atol=1e-9, err_msg=kind)
