"""Calls of the float64 reference, and the draws that its property tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.model import REF, Layer
from outvote.core.states import State
from outvote.dialects.keras.reference import strict_reference

SEEDS = st.integers(0, 2**32 - 1)


def numbers(seed: int, *shape: int) -> Array:
    """Numbers of a seed, in float64."""
    return np.random.default_rng(seed).normal(size=shape)


def layer_of(
    kind: str, config: Mapping[str, Any], args: Any = None, kwargs: Mapping[str, Any] | None = None
) -> Layer:
    """A layer of Keras that reads one tensor, or what `args` says."""
    read = [{REF: ["x0", 0]}] if args is None else args
    return Layer("it", kind, config, read, kwargs or {}, origin={"module": "keras.layers"})


def listed(count: int) -> list[Any]:
    """The arguments of a layer that is called on a list of tensors."""
    return [[{REF: [f"x{i}", 0]} for i in range(count)]]


def outputs_of_call(
    layer: Layer, weights: Sequence[Array], *given: Array | State
) -> list[Array] | None:
    """What the reference says of a layer on tensors, each with its mask or without one."""
    states = [item if isinstance(item, State) else State(item) for item in given]
    return strict_reference(layer, weights, states)


def computed(kind: str, config: Mapping[str, Any], weights: Sequence[Array], x: Array) -> Array:
    """The one output of a layer on one tensor; it has to be covered."""
    outputs = outputs_of_call(layer_of(kind, config), weights, x)
    assert outputs is not None, f"{kind}({config}) is not covered"
    (output,) = outputs
    return output
