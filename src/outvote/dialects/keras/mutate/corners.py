"""A kind of layer, and parameters for it, drawn freely: nothing has to fit behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.model import Json, Ref
from outvote.dialects.keras.mutate.catalogue import Kind, drawing_order
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.values import Draw
from outvote.mutate.registry import Impossible

_TRIES = 6
_DRAWN = 0.7  # of the parameters: more than usual, for nothing has to fit
_CORNERS = 0.33
# Of the layers: those that have one parameter, or two, besides what they must have. What several
# do together hides what one does alone, where a library refuses them.
_FEW = 0.35
# Of the layers that can: those that have two parameters which act on each other, both at other
# values than usual, and nothing else that would hide what the two do; the first is there twice, for
# most faults of windows are of it.
_PAIRED = 0.35
_PAIRS = (
    *(("padding", "strides"), ("padding", "strides"), ("padding", "dilation_rate")),
    ("strides", "output_padding"),
    *(("data_format", "padding"), ("data_format", "dilation_rate"), ("data_format", "groups")),
    *(("data_format", "interpolation"), ("antialias", "interpolation"), ("axis", "epsilon")),
    *(("go_backwards", "return_sequences"), ("unroll", "go_backwards"), ("scale", "center")),
    *(("return_state", "return_sequences"), ("axis", "invert")),
)
_USUAL = (None, 1, "valid", "channels_last", "nearest")
_PAIR_TRIES = 6
_LEAST = 3.0  # the weight of a kind without parameters
_IDLE = 0.3  # of those that pass on what they read, except in training
_MANY = {"layer": 12, "cell": 8, "equation": 6}  # values that parameters without corners have
_IDLE_KINDS = frozenset(
    "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity "
    "SpatialDropout1D SpatialDropout2D SpatialDropout3D".split()
)


def drawn_kind(tools: KerasTools, rng: np.random.Generator) -> Kind:
    """A kind with more values of parameters has more to try, so it comes more often.

    All parameters are drawn at once, so that it takes only about the logarithm of their number to
    meet every pair of values.
    """
    activations = len(tools.catalogue.activations)
    kinds = list(tools.catalogue.kinds.values())
    weights = np.array([_weight(kind, activations) for kind in kinds])
    return kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]


def _weight(kind: Kind, activations: int) -> float:
    if kind.name in _IDLE_KINDS:
        return _IDLE
    if kind.required == {"activation"}:  # one choice makes the layer: each needs its tries
        return _LEAST + activations / 2
    many = {**_MANY, "activation": activations}
    rows = {name: parameter(kind.name, name) for name in kind.parameters}
    values = [many.get(name) or 1 + len(row.corners) for name, row in rows.items() if row]
    return float(_LEAST + np.log2(1 + sum(values)))


def draw_last(
    chain: Chain,
    kind: Kind,
    tools: KerasTools,
    rng: np.random.Generator,
    also: Sequence[Ref],
    dtype: str | None = None,
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Json]] = lambda parameters: {},
) -> None:
    """Put a layer of that kind at the end, a third with a corner of one parameter (AUDEE).

    `arguments` draws those of its call, once its parameters are known.
    """
    for _ in range(_TRIES):
        parameters = _parameters(chain, kind, tools, rng)
        rows = {name: parameter(kind.name, name) for name in parameters}
        corners = {name: row.corners for name, row in rows.items() if row and row.corners}
        if corners and rng.random() < _CORNERS:
            name = str(rng.choice(sorted(corners)))
            parameters[name] = corners[name][int(rng.integers(len(corners[name])))]
        if dtype is not None:
            parameters["dtype"] = dtype
        named = arguments(parameters)
        if chain.add(kind.name, parameters, also, kind.joined, last=True, named=named):
            return
    raise Impossible(f"{kind.name} at {chain.spec}")


def _parameters(
    chain: Chain, kind: Kind, tools: KerasTools, rng: np.random.Generator
) -> dict[str, Any]:
    """Most of them drawn, or besides the required ones one or two, or two that act together."""
    pairs = [pair for pair in _PAIRS if {*pair} <= {*kind.parameters}]
    if pairs and rng.random() < _PAIRED:
        return _paired(chain, kind, tools, rng, pairs[int(rng.integers(len(pairs)))])
    drawn = kind.draw(chain.spec.place, rng, tools.catalogue.activations, False, _DRAWN)
    others = sorted(drawn.keys() - kind.required)
    if not others or rng.random() >= _FEW:
        return drawn
    few = rng.choice(others, min(len(others), int(rng.integers(1, 3))), replace=False)
    return {name: value for name, value in drawn.items() if name in {*kind.required, *few}}


def _paired(
    chain: Chain, kind: Kind, tools: KerasTools, rng: np.random.Generator, pair: tuple[str, str]
) -> dict[str, Any]:
    activations = tools.catalogue.activations
    draw = Draw(kind.name, tuple(chain.spec.place), rng, activations, False)
    for name in sorted(sorted({*kind.required, *pair}), key=drawing_order):
        row = parameter(kind.name, name)
        assert row is not None, f"{kind.name} has no row for {name}"
        for _ in range(_PAIR_TRIES):
            draw.drawn[name] = row.draw(draw)
            if name not in pair or draw.drawn[name] not in _USUAL:
                break
    return draw.drawn
