"""A kind of layer, and parameters for it, drawn freely: nothing has to fit behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.model import Json, Ref
from outvote.dialects.keras.mutate.catalogue import WITHOUT_CHANCE, Kind, drawing_order
from outvote.dialects.keras.mutate.chains import Chain
from outvote.dialects.keras.mutate.parameters import parameter
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.turns import KindTurn
from outvote.dialects.keras.mutate.values import Draw
from outvote.mutate.registry import Impossible

_TRIES = 6
_DRAWN = 0.7  # of the parameters: more than usual, for nothing has to fit
_CORNERS = 0.33
_TRIES_WITH_CORNER = 4
# Of the layers: those that have one parameter, or two, besides what they must have. What several
# do together hides what one does alone, where a library refuses them.
_FEW = 0.35
# Of the layers that can: those that have two parameters which act on each other, both at other
# values than usual, and nothing else that would hide what the two do; the first is there twice, for
# most faults of windows are of it.
_PAIRED = 0.45
_PAIRS = (
    *(("padding", "strides"), ("padding", "strides"), ("padding", "dilation_rate")),
    ("strides", "output_padding"),
    *(("data_format", "padding"), ("data_format", "dilation_rate"), ("data_format", "groups")),
    *(("data_format", "interpolation"), ("antialias", "interpolation"), ("axis", "epsilon")),
    *(("go_backwards", "return_sequences"), ("unroll", "go_backwards"), ("scale", "center")),
    *(("return_state", "return_sequences"), ("axis", "invert")),
    *(("zero_output_for_mask", "unroll"), ("zero_output_for_mask", "return_sequences")),
    *(("fill_mode", "interpolation"), ("data_format", "fill_mode")),
    *(("data_format", "crop_to_aspect_ratio"), ("data_format", "pad_to_aspect_ratio")),
)
_USUAL = (None, 1, "valid", "channels_last", "nearest")
_PAIR_TRIES = 6
_LEAST = 3.0  # the weight of a kind without parameters
_MORE_TENSORS = 1.5  # for each that it takes besides the first
_EACH_ACTIVATION = 0.6
_IDLE = 0.3  # of those that pass on what they read, except in training
_AUGMENTS = 0.2  # of its weight, for what augments in training alone
_MANY = {"layer": 12, "cell": 8, "equation": 6}  # values that parameters without corners have
_IDLE_KINDS = frozenset(
    "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity "
    "SpatialDropout1D SpatialDropout2D SpatialDropout3D".split()
)


def drawn_kind(tools: KerasTools, rng: np.random.Generator) -> Kind:
    """A kind with more values of parameters has more to try, so it comes more often.

    What augments in training alone does not come: who draws by chance does not train. All
    parameters are drawn at once, so that it takes only about the logarithm of their number to meet
    every pair of values.
    """
    activations = len(tools.catalogue.activations)
    kinds = [k for k in tools.catalogue.kinds.values() if k.name not in WITHOUT_CHANCE]
    weights = np.array([_weight(kind, activations) for kind in kinds])
    return kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]


def shares_of_kinds(tools: KerasTools) -> dict[str, float]:
    """Of all turns, by the same weights."""
    activations = len(tools.catalogue.activations)
    return {name: _weight(kind, activations) for name, kind in tools.catalogue.kinds.items()}


def _weight(kind: Kind, activations: int) -> float:
    if kind.name in _IDLE_KINDS:
        return _IDLE
    if kind.required == {"activation"}:  # one choice makes the layer: each needs its tries
        return _LEAST + _EACH_ACTIVATION * activations
    many = {**_MANY, "activation": activations}
    rows = {name: parameter(kind.name, name) for name in kind.parameters}
    values = [many.get(name) or 1 + len(row.corners) for name, row in rows.items() if row]
    least = _LEAST + _MORE_TENSORS * (kind.arity - 1)
    weight = float(least + np.log2(1 + sum(values)))
    return _AUGMENTS * weight if kind.name in WITHOUT_CHANCE else weight


def draw_last(
    chain: Chain,
    kind: Kind,
    tools: KerasTools,
    rng: np.random.Generator,
    also: Sequence[Ref],
    dtype: str | None = None,
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Json]] = lambda parameters: {},
    turn: KindTurn | None = None,
) -> None:
    """Put a layer of that kind at the end, a third with a corner of one parameter (AUDEE).

    `arguments` draws those of its call, once its parameters are known. In a turn of the kind its
    corners and the parameters that act on each other are dealt.
    """
    dealt = _dealt_corner(kind, tools, turn) if turn is not None else None
    for number in range(_TRIES):
        parameters, pair = _parameters(chain, kind, tools, rng, turn)
        if turn is None and rng.random() < _CORNERS:
            parameters |= _any_corner(kind, parameters, rng)
        if dealt is not None and dealt[0] not in pair and number < _TRIES_WITH_CORNER:
            parameters[dealt[0]] = dealt[1]
        if dtype is not None:
            parameters["dtype"] = dtype
        named = arguments(parameters)
        if chain.add(kind.name, parameters, also, kind.joined, last=True, named=named):
            return
    raise Impossible(f"{kind.name} at {chain.spec}")


def _any_corner(kind: Kind, drawn: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A corner of a parameter that was drawn."""
    rows = {name: parameter(kind.name, name) for name in drawn}
    corners = {name: row.corners for name, row in rows.items() if row and row.corners}
    if not corners:
        return {}
    name = str(rng.choice(sorted(corners)))
    return {name: corners[name][int(rng.integers(len(corners[name])))]}


def _dealt_corner(kind: Kind, tools: KerasTools, turn: KindTurn) -> tuple[str, Any] | None:
    """Every value of every parameter that has some in turn, and as many turns without."""
    values = {name: _values(kind, name, tools.catalogue.activations) for name in kind.parameters}
    places = [(name, place) for name, found in values.items() for place in range(len(found))]
    if not places:
        return None
    none = [None] * (0 if kind.required == {"activation"} else len(places))
    card = turn.dealt("corner", [*places, *none])
    return None if card is None else (card[0], values[card[0]][card[1]])


def _values(kind: Kind, name: str, activations: Sequence[str]) -> Sequence[Any]:
    row = parameter(kind.name, name)
    if row is None:
        return ()
    if name == "activation" and name in kind.required:
        return activations
    return (*row.corners, *((None,) if row.may_be_none else ()))


def _parameters(
    chain: Chain, kind: Kind, tools: KerasTools, rng: np.random.Generator, turn: KindTurn | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Most of them drawn, or besides the required ones one or two, or two that act together.

    Those two are named besides.
    """
    pairs = [pair for pair in _PAIRS if {*pair} <= {*kind.parameters}]
    if pairs and rng.random() < _PAIRED:
        any_pair = pairs[int(rng.integers(len(pairs)))]
        pair = any_pair if turn is None else turn.dealt("pair", pairs)
        return _paired(chain, kind, tools, rng, pair), pair
    drawn = kind.draw(chain.spec.place, rng, tools.catalogue.activations, False, _DRAWN)
    others = sorted(drawn.keys() - kind.required)
    if not others or rng.random() >= _FEW:
        return drawn, ()
    few = rng.choice(others, min(len(others), int(rng.integers(1, 3))), replace=False)
    kept = {name: value for name, value in drawn.items() if name in {*kind.required, *few}}
    return kept, ()


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
