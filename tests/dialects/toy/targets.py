"""Three libraries that compute toys; TOY_FAULT makes one of them lie (workers/operators.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.model import Model
from outvote.core.target import Target

BUILT_IN = {
    name: Target(name, dialect="toy", worker="numpy", library=name)
    for name in ("toy-a", "toy-b", "toy-c")
}
DEFAULT = SEARCHED = tuple(BUILT_IN)
PACKAGE = "toy"
OVERLAID: tuple[str, ...] = ()
RECIPES: dict[str, Any] = {}


def with_versions(base: Target, requirements: tuple[str, ...], name: str) -> Target:
    raise UsageError(f"target {name!r}: toys have no versions")


def helpers(targets: Iterable[Target]) -> list[Target]:
    return []


def reading_order(target: Target) -> tuple[Any, ...]:
    return (bool(target.env),)


def probe() -> tuple[Model, list[Array], Array]:
    from .workers.graph import model_of

    nodes = [{"name": "r", "op": "Relu", "inputs": ["x"]}]
    inputs = [{"name": "x", "shape": [None, 2], "batch": 0}]
    model, _ = model_of({"inputs": inputs, "nodes": nodes, "outputs": ["r"]}, None)
    return model, [np.array([[-1, 2]], np.float32)], np.array([[0, 2]], np.float32)
