"""What optimisers of `torch.optim` make of weights, by our own formulas in float64.

As PyTorch's documentation writes them; a parameter that no formula reads is not covered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.exercises import Update, widened

_COMMON: Mapping[str, Any] = {"maximize": False, "weight_decay": 0.0}
_ADAM: Mapping[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False}


class _Weight:
    """One weight on its way: its value, and what its optimiser remembers of it."""

    def __init__(self, value: Array, config: Mapping[str, Any]) -> None:
        self.w = value.astype(np.float64)
        self.c = config
        self.kept: dict[str, Array] = {}

    def mean(self, name: str, decay: float, new: Array) -> Array:
        """An exponential average, which starts at 0."""
        self.kept[name] = decay * self.kept.get(name, 0 * new) + (1 - decay) * new
        return self.kept[name]


Rule = Callable[[_Weight, Array, int], Any]  # a weight, its gradient and the step, from 1


def sgd(x: _Weight, g: Array, t: int) -> Any:
    """The first step takes the gradient for its momentum, undamped."""
    momentum = x.c["momentum"]
    if momentum:
        damped = (1 - x.c["dampening"]) * g
        buffer = x.kept["m"] = momentum * x.kept["m"] + damped if t > 1 else g
        g = g + momentum * buffer if x.c["nesterov"] else buffer
    return x.w - x.c["lr"] * g


def adam(x: _Weight, g: Array, t: int) -> Any:
    """Kingma and Ba, 2015, algorithm 1; amsgrad: Reddi and others, 2018."""
    first, second = x.c["betas"]
    m, v = x.mean("m", first, g), x.mean("v", second, g**2)
    if x.c["amsgrad"]:
        v = x.kept["top"] = np.maximum(x.kept.get("top", 0 * v), v)
    size = np.sqrt(v / (1 - second**t)) + x.c["eps"]
    return x.w - x.c["lr"] / (1 - first**t) * m / size


def rmsprop(x: _Weight, g: Array, t: int) -> Any:
    """Hinton, lecture 6a, 2012; epsilon outside the root."""
    size = x.mean("v", x.c["alpha"], g**2)
    if x.c["centered"]:
        size = size - x.mean("a", x.c["alpha"], g) ** 2
    step = g / (np.sqrt(size) + x.c["eps"])
    x.kept["m"] = x.c["momentum"] * x.kept.get("m", 0 * g) + step
    return x.w - x.c["lr"] * x.kept["m"]


def adagrad(x: _Weight, g: Array, t: int) -> Any:
    """Duchi and others, 2011."""
    start = np.full_like(x.w, x.c["initial_accumulator_value"])
    x.kept["v"] = x.kept.get("v", start) + g**2
    rate = x.c["lr"] / (1 + (t - 1) * x.c["lr_decay"])
    return x.w - rate * g / (np.sqrt(x.kept["v"]) + x.c["eps"])


FORMULAS: Mapping[str, tuple[Rule, Mapping[str, Any]]] = {
    "SGD": (sgd, {"lr": 1e-3, "momentum": 0.0, "dampening": 0.0, "nesterov": False}),
    "Adam": (adam, _ADAM),
    "AdamW": (adam, {**_ADAM, "weight_decay": 0.01}),
    "RMSprop": (
        rmsprop,
        {"lr": 1e-2, "alpha": 0.99, "eps": 1e-8, "momentum": 0.0, "centered": False},
    ),
    "Adagrad": (
        adagrad,
        {"lr": 1e-2, "lr_decay": 0.0, "initial_accumulator_value": 0.0, "eps": 1e-10},
    ),
}


def exact_update(update: Update) -> tuple[Array, ...] | None:
    """All weights after each step; None where no formula covers what is asked."""
    name = str(update.optimizer["class_name"])
    given = dict(update.optimizer.get("config") or {})
    if name not in FORMULAS:
        return None
    rule, defaults = FORMULAS[name]
    config = {**_COMMON, **defaults, **given}
    if given.keys() - _COMMON.keys() - defaults.keys():
        return None
    weights = [_Weight(value, config) for value in update.weights]
    after: list[Array] = []
    for step, gradients in enumerate(update.changed(widened).gradients, 1):
        for x, g in zip(weights, gradients, strict=True):
            x.w = rule(x, _decayed(x, -g if config["maximize"] else g, name), step)
            after.append(x.w)
    return tuple(after)


def _decayed(x: _Weight, g: Array, name: str) -> Array:
    """The gradient with the decay of its weight in it; of AdamW the weight itself decays."""
    decay: float = x.c["weight_decay"]
    if name == "AdamW":
        x.w = x.w * (1 - x.c["lr"] * decay)
        return g
    return g + decay * x.w
