"""An optimiser fed with given gradients: what it makes of the weights, and what it remembers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from outvote.core.arrays import Array
from outvote.core.train_protocol import ApplyGradients, GradientsApplied, Leaf, Named
from outvote.dialects.keras.workers.keras3.backends import copied, to_tensor
from outvote.worker.main import Context


def optimizer_of(named: Named) -> Any:
    """The optimiser that a name or its serialised form stands for."""
    kind, config = named["class_name"], dict(named.get("config") or {})
    known: Any = getattr(keras.optimizers, kind, None)
    if known is not None and hasattr(
        known, "from_config"
    ):  # Keras does not find each of its classes by name: not Lamb
        return known.from_config(config)
    return keras.optimizers.get({**named, "config": config} if config else kind)


def apply_gradients(
    context: Context, backend: Any, mode: str, request: ApplyGradients
) -> GradientsApplied:
    """All updates, one after the other."""
    if not hasattr(backend, "updated"):
        raise NotImplementedError(f"Keras on {backend.libraries[0]} has no optimisers")
    get = context.blobs.get
    weights = [np.array(get(digest)) for digest in request.weights]
    constraints = list(request.constraints) or [None] * len(weights)
    variables = [
        _variable(place, *pair) for place, pair in enumerate(zip(weights, constraints, strict=True))
    ]
    optimizer = optimizer_of(request.optimizer)
    optimizer.build(variables)
    sparse = list(request.rows) or [None] * len(weights)

    def update(given: Sequence[Any]) -> None:
        if getattr(backend, "updates_by_values", False) and _knows_values(optimizer):
            _applied_by_values(optimizer, given, variables)
        else:
            optimizer.apply(list(given), variables)

    run = backend.updated(update, lambda: [*variables, *optimizer.variables], mode)
    context.begin(len(request.gradients))
    after = []
    for digests in request.gradients:
        arrays = [np.array(get(digest)) for digest in digests]
        run(
            [
                to_tensor(array) if rows is None else _of_rows(backend, array, rows, weight.shape)
                for array, rows, weight in zip(arrays, sparse, weights, strict=True)
            ]
        )
        after.append(tuple(map(copied, variables)))
        context.step()
    memory = tuple(
        Leaf("", place, variable.name, copied(variable))
        for place, variable in enumerate(optimizer.variables)
    )
    return GradientsApplied(weights=tuple(after), memory=memory)


def _knows_values(optimizer: Any) -> bool:
    """Whether it has a `stateless_apply` of its own: with JAX there is no other way then.

    Such is LossScaleOptimizer, which assigns inside a condition otherwise.
    """
    return type(optimizer).stateless_apply is not keras.optimizers.Optimizer.stateless_apply


def _applied_by_values(optimizer: Any, given: Sequence[Any], variables: Sequence[Any]) -> None:
    """As Keras' own trainer does with JAX: values go in and come out."""
    values = [[variable.value for variable in some] for some in (optimizer.variables, variables)]
    learned, own = optimizer.stateless_apply(values[0], list(given), values[1])
    for variable, value in zip([*variables, *optimizer.variables], [*learned, *own], strict=True):
        variable.assign(value)


def _variable(place: int, value: Array, constraint: Named | None) -> Any:
    found = keras.Variable(value, dtype=value.dtype.name, name=f"w{place}")
    if constraint is not None:
        found.constraint = keras.constraints.get(dict(constraint))
    return found


def _of_rows(backend: Any, values: Array, rows: Array, shape: Sequence[int]) -> Any:
    """As the library hands such a gradient to its optimisers."""
    if hasattr(backend, "some_rows"):
        return backend.some_rows(values, rows, shape)
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, rows, values)
    return to_tensor(dense)
