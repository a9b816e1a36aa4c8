"""What this Keras trains with: every loss, optimiser, regulariser and constraint, by its class."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import keras
from keras.src import backend

from outvote.core.train_protocol import TRUTHS, StagesListed

_GENERAL = ("self", "args", "kwargs", "name", "dtype")


# Shapes that tell losses apart: what they take, by the form of the truth.
_SHAPES = {
    "alike": ((3, 4), (3, 4), "float32"),
    "class": ((3,), (3, 4), "int32"),
    "sequence": ((3, 2), (3, 5, 4), "int32"),
}


def stages() -> StagesListed:
    losses = _listed(keras.losses, keras.losses.Loss)
    forms = {kind: _truth_of(getattr(keras.losses, kind)()) for kind in losses}
    return StagesListed(
        losses=losses,
        truths={kind: form for kind, form in forms.items() if form is not None},
        optimizers=_listed(keras.optimizers, keras.optimizers.Optimizer),
        regularizers=_listed(keras.regularizers, keras.regularizers.Regularizer),
        constraints=_listed(keras.constraints, keras.constraints.Constraint),
    )


def _listed(module: ModuleType, base: type) -> dict[str, dict[str, Any]]:
    """Classes by their own names: some are offered under others, too."""
    found = {
        value.__name__: _defaults(value)
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, base) and value is not base
    }
    return dict(sorted(found.items()))


def _truth_of(loss: Any) -> str | None:
    """The first form of the truth that a loss takes; tried without computing anything."""
    return next((form for form in TRUTHS if _takes(loss, *_SHAPES[form])), None)


def _takes(loss: Any, truth: tuple[int, ...], prediction: tuple[int, ...], dtype: str) -> bool:
    given = keras.KerasTensor(truth, dtype), keras.KerasTensor(prediction, "float32")
    try:
        backend.compute_output_spec(lambda *tensors: loss(*tensors), *given)
    except Exception:  # of whatever kind: a library says in its own way that shapes do not fit
        return False
    return True


def _defaults(kind: Any) -> dict[str, Any]:
    """Plain values; None for what has none, or one that is none of these."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {
        p.name: p.default if isinstance(p.default, bool | int | float | str) else None
        for p in parameters
        if p.name not in _GENERAL
    }
