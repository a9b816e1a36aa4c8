"""What optimisers make of weights, by our own formulas in float64: from papers and documentation.

Libraries share Keras' code, and what is wrong there is wrong for a majority of them. A formula
counts where at least one library gives it in float64, which shows that the parameters are meant
alike; a parameter that no formula reads is not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.exercises import Update, widened

_COMMON: Mapping[str, Any] = {
    "weight_decay": None,
    "clipnorm": None,
    "clipvalue": None,
    "global_clipnorm": None,
    "use_ema": False,
    "ema_momentum": 0.99,
    "ema_overwrite_frequency": None,
    "loss_scale_factor": None,
    "name": None,
}
_ADAM: Mapping[str, Any] = {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}


class _Weight:
    """One weight on its way: its value, and what its optimiser remembers of it."""

    def __init__(self, value: Array, config: Mapping[str, Any]) -> None:
        self.w = value.astype(np.float64)
        self.c = config
        self.kept: dict[str, Array] = {}
        self.start = self.average = self.w

    def mean(self, name: str, decay: float, new: Array, start: float = 0.0) -> Array:
        """An exponential average, which starts at one number."""
        before = self.kept.get(name, np.full_like(self.w, start))
        self.kept[name] = decay * before + (1 - decay) * new
        return self.kept[name]


Rule = Callable[[_Weight, Array, int], Any]  # a weight, its gradient and the step, from 1


def sgd(x: _Weight, g: Array, t: int) -> Any:
    """Sutskever and others, On the importance of initialization and momentum, 2013."""
    momentum, step = x.c["momentum"], x.c["learning_rate"] * g
    x.kept["m"] = momentum * x.kept.get("m", 0 * g) - step
    return x.w + (momentum * x.kept["m"] - step if x.c["nesterov"] else x.kept["m"])


def rmsprop(x: _Weight, g: Array, t: int) -> Any:
    """Hinton, Neural networks for machine learning, lecture 6a, 2012; epsilon inside the root."""
    size = x.mean("v", x.c["rho"], g**2)
    if x.c["centered"]:
        size = size - x.mean("a", x.c["rho"], g) ** 2
    step = x.c["learning_rate"] * g / np.sqrt(size + x.c["epsilon"])
    x.kept["m"] = x.c["momentum"] * x.kept.get("m", 0 * g) + step
    return x.w - x.kept["m"]


def _moments(x: _Weight, g: Array) -> tuple[Array, Array]:
    return x.mean("m", x.c["beta_1"], g), x.mean("v", x.c["beta_2"], g**2)


def _unbiased(x: _Weight, t: int) -> tuple[float, float]:
    """By what both moments are too small after so many steps."""
    return 1 - x.c["beta_1"] ** t, 1 - x.c["beta_2"] ** t


def adam(x: _Weight, g: Array, t: int) -> Any:
    """Kingma and Ba, 2015, as at the end of section 2; amsgrad: Reddi and others, 2018."""
    (m, v), (first, second) = _moments(x, g), _unbiased(x, t)
    if x.c["amsgrad"]:
        v = x.kept["top"] = np.maximum(x.kept.get("top", 0 * v), v)
    step = x.c["learning_rate"] * np.sqrt(second) / first
    return x.w - step * m / (np.sqrt(v) + x.c["epsilon"])


def adamax(x: _Weight, g: Array, t: int) -> Any:
    """Kingma and Ba, 2015, algorithm 2."""
    m = x.mean("m", x.c["beta_1"], g)
    x.kept["u"] = np.maximum(x.c["beta_2"] * x.kept.get("u", 0 * g), np.abs(g))
    step = x.c["learning_rate"] / (1 - x.c["beta_1"] ** t)
    return x.w - step * m / (x.kept["u"] + x.c["epsilon"])


def nadam(x: _Weight, g: Array, t: int) -> Any:
    """Dozat, Incorporating Nesterov momentum into Adam, 2016, with its warming schedule."""
    m, v = _moments(x, g)
    factors = [x.c["beta_1"] * (1 - 0.5 * 0.96**n) for n in range(1, t + 2)]
    now, then = np.prod(factors[:-1]), np.prod(factors)
    ahead = factors[-1] * m / (1 - then) + (1 - factors[-2]) * g / (1 - now)
    size = np.sqrt(v / _unbiased(x, t)[1]) + x.c["epsilon"]
    return x.w - x.c["learning_rate"] * ahead / size


def adagrad(x: _Weight, g: Array, t: int) -> Any:
    """Duchi and others, 2011."""
    start = np.full_like(x.w, x.c["initial_accumulator_value"])
    x.kept["v"] = x.kept.get("v", start) + g**2
    return x.w - x.c["learning_rate"] * g / np.sqrt(x.kept["v"] + x.c["epsilon"])


def adadelta(x: _Weight, g: Array, t: int) -> Any:
    """Zeiler, 2012, algorithm 1."""
    before = x.kept.get("d", 0 * g)
    size = x.mean("v", x.c["rho"], g**2)
    delta = -np.sqrt((before + x.c["epsilon"]) / (size + x.c["epsilon"])) * g
    x.mean("d", x.c["rho"], delta**2)
    return x.w + x.c["learning_rate"] * delta


def ftrl(x: _Weight, g: Array, t: int) -> Any:
    """McMahan and others, Ad click prediction, 2013, algorithm 1, with shrinkage."""
    c, power = x.c, -x.c["learning_rate_power"]
    before = x.kept.get("n", np.full_like(x.w, c["initial_accumulator_value"]))
    x.kept["n"] = before + g**2
    pull = g + 2 * c["l2_shrinkage_regularization_strength"] * x.w
    sigma = (x.kept["n"] ** power - before**power) / c["learning_rate"]
    z = x.kept["z"] = x.kept.get("z", 0 * g) + pull - sigma * x.w
    l1, l2 = c["l1_regularization_strength"], c["l2_regularization_strength"]
    size = (x.kept["n"] ** power + c["beta"]) / c["learning_rate"] + 2 * l2
    return (np.clip(z, -l1, l1) - z) / size


def lion(x: _Weight, g: Array, t: int) -> Any:
    """Chen and others, Symbolic discovery of optimization algorithms, 2023, algorithm 2."""
    m = x.kept.get("m", 0 * g)
    found: Array = np.sign(x.c["beta_1"] * m + (1 - x.c["beta_1"]) * g)
    x.mean("m", x.c["beta_2"], g)
    return x.w - x.c["learning_rate"] * found


def lamb(x: _Weight, g: Array, t: int) -> Any:
    """You and others, Large batch optimization for deep learning, 2020, algorithm 2."""
    (m, v), (first, second) = _moments(x, g), _unbiased(x, t)
    ratio = m / first / (np.sqrt(v / second) + x.c["epsilon"])
    sizes = np.linalg.norm(x.w), np.linalg.norm(ratio)
    trust = sizes[0] / sizes[1] if all(sizes) else 1.0
    return x.w - x.c["learning_rate"] * trust * ratio


def schedule_free(x: _Weight, g: Array, t: int) -> Any:
    """Defazio and others, The road less scheduled, 2024: the weight is y, between x and z."""
    beta, z = x.c["beta_1"], x.kept.get("z", x.start)
    rate = x.c["learning_rate"] * min(1.0, t / x.c["warmup_steps"] if x.c["warmup_steps"] else 1.0)
    size = np.sqrt(x.mean("v", x.c["beta_2"], g**2) / _unbiased(x, t)[1])
    middle = (x.w - (1 - beta) * z) / beta
    x.kept["z"] = z - rate * g / (size + x.c["epsilon"])
    middle = (1 - 1 / t) * middle + x.kept["z"] / t
    return (1 - beta) * x.kept["z"] + beta * middle


FORMULAS: Mapping[str, tuple[Rule, Mapping[str, Any]]] = {
    "sgd": (sgd, {"learning_rate": 0.01, "momentum": 0.0, "nesterov": False}),
    "rmsprop": (
        rmsprop,
        {
            "learning_rate": 0.001,
            "rho": 0.9,
            "momentum": 0.0,
            "epsilon": 1e-7,
            "centered": False,
        },
    ),
    "adam": (adam, {**_ADAM, "amsgrad": False}),
    "adamw": (adam, {**_ADAM, "amsgrad": False, "weight_decay": 0.004}),
    "adamax": (adamax, _ADAM),
    "nadam": (nadam, _ADAM),
    "adagrad": (
        adagrad,
        {"learning_rate": 0.001, "initial_accumulator_value": 0.1, "epsilon": 1e-7},
    ),
    "adadelta": (adadelta, {"learning_rate": 0.001, "rho": 0.95, "epsilon": 1e-7}),
    "ftrl": (
        ftrl,
        {
            "learning_rate": 0.001,
            "learning_rate_power": -0.5,
            "initial_accumulator_value": 0.1,
            "l1_regularization_strength": 0.0,
            "l2_regularization_strength": 0.0,
            "l2_shrinkage_regularization_strength": 0.0,
            "beta": 0.0,
        },
    ),
    "lion": (lion, {"learning_rate": 0.001, "beta_1": 0.9, "beta_2": 0.99}),
    "lamb": (lamb, _ADAM),
    "schedulefreeadamw": (
        schedule_free,
        {**_ADAM, "learning_rate": 0.0025, "epsilon": 1e-8, "warmup_steps": 0},
    ),
}


def exact_update(update: Update) -> tuple[Array, ...] | None:
    """All weights after each step; None where no formula covers what is asked."""
    known = FORMULAS.get(str(update.optimizer["class_name"]).lower())
    if known is None or any(constraint is not None for constraint in update.constraints):
        return None
    rule, defaults = known
    given = dict(update.optimizer.get("config") or {})
    config = {**_COMMON, **defaults, **given}
    if given.keys() - _COMMON.keys() - defaults.keys() or not _is_plain(config):
        return None
    weights = [_Weight(value, config) for value in update.weights]
    after: list[Array] = []
    scale = config["loss_scale_factor"] or 1.0
    for step, arrays in enumerate(update.changed(widened).whole().gradients, 1):
        unscaled = [array / scale for array in arrays]
        for x, g in zip(weights, _clipped(unscaled, config), strict=True):
            x.w = x.w - x.w * (config["weight_decay"] or 0.0) * config["learning_rate"]
            x.w = rule(x, g, step)
            _averaged(x, step)
            after.append(x.w)
    return tuple(after)


def _is_plain(config: Mapping[str, Any]) -> bool:
    """Schedules and the like are no numbers."""
    return all(
        value is None or isinstance(value, bool | int | float | str) for value in config.values()
    )


def _clipped(gradients: list[Array], config: Mapping[str, Any]) -> list[Array]:
    if config["clipvalue"]:
        return [np.clip(g, -config["clipvalue"], config["clipvalue"]) for g in gradients]
    if config["clipnorm"]:
        return [g * _shrunk(config["clipnorm"], float(np.linalg.norm(g))) for g in gradients]
    if config["global_clipnorm"]:
        norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
        return [g * _shrunk(config["global_clipnorm"], norm) for g in gradients]
    return gradients


def _shrunk(most: float, norm: float) -> float:
    return float(most / max(norm, most))


def _averaged(x: _Weight, step: int) -> None:
    """The average starts with the first step; now and then it takes the place of the weight."""
    if not x.c["use_ema"]:
        return
    momentum = x.c["ema_momentum"] if step > 1 else 0.0
    x.average = momentum * x.average + (1 - momentum) * x.w
    every = x.c["ema_overwrite_frequency"]
    if every and step % every == 0:
        x.w = x.average
