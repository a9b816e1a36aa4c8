"""What this Keras trains with: every loss, optimiser, regulariser and constraint, by its class."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import keras

from outvote.core.train_protocol import StagesListed

_GENERAL = ("self", "args", "kwargs", "name", "dtype")


def stages() -> StagesListed:
    return StagesListed(
        losses=_listed(keras.losses, keras.losses.Loss),
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


def _defaults(kind: Any) -> dict[str, Any]:
    """Plain values; None for what has none, or one that is none of these."""
    parameters = inspect.signature(kind.__init__).parameters.values()
    return {
        p.name: p.default if isinstance(p.default, bool | int | float | str) else None
        for p in parameters
        if p.name not in _GENERAL
    }
