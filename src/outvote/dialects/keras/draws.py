"""Small models for property-based tests, of the layers and values that `fuzz` draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from outvote.core.model import Input, Model, Ref
from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.chains import SHAPES, Chain
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.drawn import DrawnModel, LayerWish
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools


def optional_parameters(tools: Tools, kind: str) -> list[str]:
    """The parameters of a kind that need not be given."""
    found = _kind(tools, kind)
    return sorted(set(found.parameters) - found.required)


def parameters(tools: Tools, wish: LayerWish) -> dict[str, Any]:
    """What is drawn for a layer on the first tensor that its kind takes."""
    return _parameters(tools, wish, _first(_kind(tools, wish.kind), wish.shape).shape[1:])


def model(tools: Tools, wishes: Sequence[LayerWish]) -> DrawnModel | None:
    """One layer behind the other; None where the first is refused.

    A later one that does not fit, or is refused, is left out: so a test that takes the first away
    has the second in its place, on a tensor of its own.
    """
    first = _first(_kind(tools, wishes[0].kind), wishes[0].shape)
    empty = Model("drawn", (first,), (), (Ref(first.name),), "keras")
    rng = np.random.default_rng(wishes[0].seed)
    chain = Chain(Subject.of(empty, {}), Ref(first.name), cast(KerasTools, tools), rng)
    given: dict[str, dict[str, Any]] = {}
    for place, wish in enumerate(wishes):
        added = _added(chain, tools, wish)
        if added is not None:
            given[chain.end.producer] = added
        elif not place:
            return None
    made = replace(empty, layers=tuple(chain.layers), outputs=(chain.end,))
    return DrawnModel(made, (chain.spec.shape,), given)


def _added(chain: Chain, tools: Tools, wish: LayerWish) -> dict[str, Any] | None:
    """The parameters of the layer put at the end: defaults, where others are refused."""
    kind = _kind(tools, wish.kind)
    fits = len(chain.spec.place) in kind.ranks and chain.spec.is_float != kind.whole_numbers
    if not fits:
        return None
    for drawn in (wish, replace(wish, drawn=frozenset())):
        values = _parameters(tools, drawn, chain.spec.place)
        if chain.add(kind.name, values, [chain.end] * (kind.arity - 1), kind.joined):
            return values
    return None


def _parameters(tools: Tools, wish: LayerWish, place: Sequence[int | None]) -> dict[str, Any]:
    """Drawn as in a campaign; then what nobody wished for is left at its default."""
    found, rng = _kind(tools, wish.kind), np.random.default_rng(wish.seed)
    activations = cast(KerasTools, tools).catalogue.activations
    values = found.draw(place, rng, activations, keep=False, share=1.0)
    return {k: v for k, v in values.items() if k in found.required or k in wish.drawn}


def _first(kind: Kind, number: int) -> Input:
    shapes = [shape for rank in kind.ranks for shape in SHAPES[rank]]
    dtype = "int32" if kind.whole_numbers else "float32"
    return Input("x", (None, *shapes[number % len(shapes)]), dtype)


def _kind(tools: Tools, name: str) -> Kind:
    return cast(KerasTools, tools).catalogue.kinds[name]
