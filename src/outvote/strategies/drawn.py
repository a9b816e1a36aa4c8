"""What Hypothesis draws: wishes, which shrink by themselves, and what Keras makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.case import random_data
from outvote.core.dialect import dialect
from outvote.core.errors import UsageError
from outvote.core.parts import Draws
from outvote.mutate.drawn import DrawnModel, LayerWish
from outvote.mutate.tools import Tools
from outvote.testing.current import state

_SHAPES = 12
_SEEDS = 1 << 16
_SCALES = (1.0, 10.0, 1e-3, 1e3, 1e-6)


@st.composite
def layers(draw: st.DrawFn, kinds: Sequence[str] | None = None) -> DrawnModel:
    """A model of one layer; `kinds` are names of Keras layers, by default all that are drawn."""
    return _made(draw, kinds, 1)


@st.composite
def models(draw: st.DrawFn, kinds: Sequence[str] | None = None, max_layers: int = 4) -> DrawnModel:
    """A chain of layers, with weights."""
    return _made(draw, kinds, max_layers)


@st.composite
def parameters(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Parameters for a layer of that kind: those that it needs, and some others."""
    tools, wing = _catalogue()
    return wing.parameters(tools, draw(_wish(tools, wing, _known([kind], tools))))


@st.composite
def inputs_for(draw: st.DrawFn, model: DrawnModel, max_count: int = 4) -> list[Array]:
    """Inputs that a drawn model takes, one array each: numbers of several sizes, no NaN."""
    count, seed = draw(st.integers(1, max_count)), draw(st.integers(0, _SEEDS))
    scale = draw(st.sampled_from(_SCALES))
    found = random_data(model.model, count, seed).inputs
    return [_scaled(array, scale) for array in found]


def _scaled(array: Array, scale: float) -> Array:
    return np.asarray(array * array.dtype.type(scale)) if array.dtype.kind == "f" else array


def _made(draw: st.DrawFn, kinds: Sequence[str] | None, most: int) -> DrawnModel:
    tools, wing = _catalogue()
    wish = _wish(tools, wing, _known(kinds, tools))
    wishes = draw(st.lists(wish, min_size=1, max_size=most))
    made = wing.model(tools, wishes)
    return reject() if made is None else made


def _wish(tools: Tools, wing: Draws, kinds: Sequence[str]) -> st.SearchStrategy[LayerWish]:
    def of(kind: str) -> st.SearchStrategy[LayerWish]:
        names = wing.optional_parameters(tools, kind)
        drawn = st.frozensets(st.sampled_from(names)) if names else st.just(frozenset())
        return st.builds(
            LayerWish,
            st.just(kind),
            shape=st.integers(0, _SHAPES),
            seed=st.integers(0, _SEEDS),
            drawn=drawn,
        )

    return st.sampled_from(kinds).flatmap(of)


def _known(kinds: Sequence[str] | None, tools: Tools) -> list[str]:
    if kinds is None:
        return sorted(tools.kinds)
    for kind in kinds:
        if kind not in tools.kinds:
            why = tools.not_covered.get(kind, "there is no such layer")
            raise UsageError(f"{kind!r} cannot be drawn: {why}")
    return list(kinds)


def _catalogue() -> tuple[Tools, Draws]:
    """The layers of the targets that the tests compare."""
    return state.outvote().tools(), dialect("keras").draws
