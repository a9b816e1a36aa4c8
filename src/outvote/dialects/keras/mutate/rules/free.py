"""A layer of its own: any kind, on tensors that are drawn for it, and nothing around it.

Ours. What a model gives its layers is usual; here values come from a pool of extremes, sizes from a
few (so that compiled code is used again) with an odd one now and then, in every floating type, with
masks where there are steps, and batches of one instance and of none. Some sizes are known at run
time alone, so that a window may be larger than what it is laid on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Input, Json, Model, Ref
from outvote.dialects.keras.mutate.arguments import DrawnCall, ReadTensor, drawn_arguments
from outvote.dialects.keras.mutate.catalogue import WITHOUT_CHANCE, Kind
from outvote.dialects.keras.mutate.chains import PLACES, SHAPES, Chain
from outvote.dialects.keras.mutate.corners import draw_last, drawn_kind, shares_of_kinds
from outvote.dialects.keras.mutate.maker import drawn_weight, pooled_weight
from outvote.dialects.keras.mutate.masks import drawn_mask
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.dialects.keras.mutate.turns import KindTurn, cards, turn_of
from outvote.mutate import extremes
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject

T = TypeVar("T")
NAME, GROUP = "FL", "layers"
TITLE = "layer on tensors of its own"
OWN_TENSORS = True
DEALS = True
_KINDS = 20
_WIDER = 0.2  # of tensors for layers in another type: they are in float32, and Keras casts them
_NARROW = ("float16", "bfloat16")
_MIXED_POLICIES = 0.25  # of the layers in these
# Six instances, each of which may be filled and masked in a way of its own: in one layer, six are
# tried.
_BATCHES = cards({6: 10, 1: 2, 2: 1, 0: 1})
_ODD_SHAPES = 0.08
_MOST_ODD = 11
_LONG = 0.3  # of those have one size that is more than a vector of a processor holds
_LONG_SIZES = (17, 33, 65)
_FREE = cards({False: 5, True: 1})  # some have sizes that are known at run time alone
_FREE_SIZES = {1: 0.32, 2: 0.3, 3: 0.13, 5: 0.2, 0: 0.05}  # smaller than many a window
_FIRST_KNOWN = 0.25  # of those know the first size; the others the last, where channels mostly are
# In how many turns a kind is given usual numbers in a type, and such with a way of its own for each
# instance, or for each number where it stands alone, and nothing hides behind an extreme.
_USUAL: Mapping[str, int] = {"float32": 9, "float16": 1, "bfloat16": 1, "float64": 1}
_MIXED: Mapping[str, int] = {"float32": 14, "float16": 5, "bfloat16": 3, "float64": 2}
_TOLD = 2  # turns with a way on which such layers are known to go wrong
_MORE_TENSORS_ALIKE = 0.4  # of those behind the first: filled in the same way
_POOLED_WEIGHTS = 0.15
_OTHER_PARTNER = 0.25  # of second tensors: of another length, one that is spread, of other rank
_THIRD = 0.15  # of what takes two tensors and may take three
_INTEGERS = 3  # turns with integers for what computes with floats
_ALL_INTEGERS = 0.6  # of the tensors behind one of integers
_PIXELS = cards({True: 2, False: 3})  # of the tensors of what reads images
_INTEGER_TYPES = cards({"int32": 3, "uint8": 2, "int8": 1, "int64": 1, "bool": 1})
_PIXEL_TYPES = {"uint8": 0.8, "int32": 0.2}
_INDEX_TYPES = cards({"int32": 12, "int64": 4, "uint8": 2, "int8": 1, "float32": 1})
_MOST_TOKENS = 8  # indices that every kind takes, as its parameters are drawn
_TWO_ALONE = ("Dot", "HashedCrossing", "Subtract")
# What computes each number of its output from one number of each input.
_EACH_ALONE = frozenset(
    "Activation ReLU LeakyReLU PReLU ELU Rescaling Normalization BatchNormalization Discretization "
    "Solarization Add Average Maximum Minimum Multiply Subtract Identity UpSampling1D".split()
)
_OF_IMAGES = frozenset(
    "AutoContrast CenterCrop ContrastLimitedAdaptiveHistogramEqualization Equalization RandomCrop "
    "Rescaling Resizing Solarization".split()
).union(WITHOUT_CHANCE)
# By the beginnings of their names: what takes statistics, what compares, what has borders.
_TELLING: Sequence[tuple[tuple[str, ...], Sequence[extremes.Way]]] = (
    (
        ("LayerNorm", "GroupNorm", "RMSNorm", "UnitNorm", "Equal", "AutoCon", "Contrast"),
        (extremes.offset, extremes.constant, extremes.huge, extremes.tiny, extremes.zeros),
    ),
    (
        ("MaxPooling", "GlobalMax", "AdaptiveMax", "Maximum", "Minimum"),
        (extremes.nans, extremes.infinities, extremes.special, extremes.ties),
    ),
    (
        ("Discretization", "Masking", "ReLU", "Solarization"),
        (extremes.steps, extremes.beside_steps, extremes.special, extremes.ties),
    ),
    (("AveragePooling", "GlobalAverage", "AdaptiveAverage"), (extremes.huge, extremes.special)),
)
_READ_MASKS = frozenset(
    "LSTM GRU SimpleRNN RNN Bidirectional TimeDistributed Attention AdditiveAttention Softmax "
    "MultiHeadAttention GroupedQueryAttention GlobalAveragePooling1D Concatenate Add Average "
    "Maximum Minimum Multiply Subtract".split()
)
_MASKED = 0.5  # of what has steps and is read by one of these
_MASKED_IN_VAIN = 0.08  # of what others read


@dataclass
class _Bench:
    """What a layer is given, in the making."""

    rng: np.random.Generator
    kind: Kind
    dtype: str
    batch: int
    turn: KindTurn
    way: extremes.Way | None  # of the first tensor; None: integers
    inputs: list[Input] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    read: int = 0  # of them, without a name in the call

    def take(self, announced: Sequence[int | None], array: Array, dtype: str) -> Ref:
        name = f"x{len(self.inputs)}"
        self.inputs.append(Input(name, (None, *announced), dtype))
        self.arrays.append(array)
        return Ref(name)

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)


def sites(subject: Subject, tools: KerasTools) -> Sequence[None]:
    return (None,)  # it needs no place in a model


def apply(subject: Subject, site: None, tools: KerasTools, rng: np.random.Generator) -> Subject:
    turn = turn_of(rng, shares_of_kinds(tools))
    kind = tools.catalogue.kinds[turn.of]
    for _ in range(_KINDS):
        try:
            return _alone(kind, tools, rng, replace(turn, of=kind.name))
        except Impossible:
            kind = drawn_kind(tools, rng)
    raise Impossible("none of the drawn kinds fits")


def _alone(kind: Kind, tools: KerasTools, rng: np.random.Generator, turn: KindTurn) -> Subject:
    held_in, way = turn.dealt("tensor", _filling(kind))
    bench = _Bench(rng, kind, held_in, turn.dealt("batch", _BATCHES), turn, way)
    refs = _tensors(bench, _place(kind, rng, turn))
    bench.read = len(refs)
    base = Subject.of(Model("free", tuple(bench.inputs), (), (refs[0],), "keras"), {})
    weights = pooled_weight if bench.chance(_POOLED_WEIGHTS) else drawn_weight
    chain = Chain(base, refs[0], tools, rng, weights)
    ends = [_masked(bench, chain, ref) for ref in refs]
    chain.end = ends[0]
    dtype = None if bench.dtype == "float32" else bench.dtype
    if dtype in _NARROW and bench.chance(_MIXED_POLICIES):
        dtype = f"mixed_{dtype}"  # computes in it, and keeps weights in float32
    arguments = partial(_arguments, bench, chain)
    draw_last(chain, kind, tools, rng, ends[1:], dtype, arguments, turn)
    full = Subject.of(replace(base.model, inputs=tuple(bench.inputs)), {})
    return full.with_layers(chain.layers, (chain.end,), chain.specs).fed(bench.arrays)


def _arguments(bench: _Bench, chain: Chain, parameters: Mapping[str, Any]) -> dict[str, Json]:
    """What the call takes besides, on inputs of its own in the place of those drawn before."""
    del bench.inputs[bench.read :], bench.arrays[bench.read :]

    def take(announced: Sequence[int | None], array: Array, dtype: str) -> Ref:
        ref = bench.take(announced, array, dtype)
        chain.specs[ref.producer] = (Spec((None, *announced), dtype),)
        return ref

    kind = bench.kind
    read = zip(bench.inputs, bench.arrays, strict=True)
    given = [ReadTensor(item.shape[1:], array) for item, array in read]
    call = DrawnCall(kind.name, kind.joined, parameters, given, bench.dtype, bench.rng, take)
    return drawn_arguments(kind.arguments, call, bench.turn)


def _place(kind: Kind, rng: np.random.Generator, turn: KindTurn) -> tuple[int, ...]:
    rank = int(rng.choice(kind.ranks))
    if rng.random() < _ODD_SHAPES and rank < 5 and kind.name not in PLACES:
        odd = [int(n) for n in rng.integers(1, _MOST_ODD, rank)]
        if rng.random() < _LONG and rank < 4:  # others would have too many numbers
            odd[int(rng.integers(rank))] = int(rng.choice(_LONG_SIZES))
        return tuple(odd)
    return turn.dealt(f"place {rank}", PLACES.get(kind.name) or SHAPES[rank])


def _tensors(bench: _Bench, place: tuple[int, ...]) -> list[Ref]:
    """What the kind reads: of one place, or of such as are spread over each other."""
    count = bench.kind.arity
    if count == 2 and bench.kind.name not in _TWO_ALONE and bench.chance(_THIRD):
        count = 3
    free = bench.turn.dealt("free", _FREE)
    announced, place = _freed(bench, place) if free else (place, place)
    refs = [_tensor(bench, announced, place)]
    others = [place if free else _partner(place, bench) for _ in range(count - 1)]
    if _attends(bench.kind):  # as many keys as values
        others = [(*others[0][:1], *other[1:]) for other in others]
    return refs + [_tensor(bench, announced if free else other, other) for other in others]


def _attends(kind: Kind) -> bool:
    return "return_attention_scores" in kind.arguments


def _freed(bench: _Bench, place: tuple[int, ...]) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """What is announced, and what comes: other sizes along all axes but one."""
    if len(place) == 1:
        known = None if bench.kind.whole_numbers else 0
    else:
        known = 0 if len(place) > 2 and bench.chance(_FIRST_KNOWN) else len(place) - 1
    sizes = [n if axis == known else _one(_FREE_SIZES, bench.rng) for axis, n in enumerate(place)]
    announced = [n if axis == known else None for axis, n in enumerate(place)]
    return tuple(announced), tuple(sizes)


def _partner(place: tuple[int, ...], bench: _Bench) -> tuple[int, ...]:
    """The same shape, or one that differs along the first axis, or has no such axis."""
    if not bench.chance(_OTHER_PARTNER):
        return place
    if _attends(bench.kind):
        channels = place[-1] if bench.kind.joined or bench.chance(0.5) else place[-1] + 1
        return (*(1 if bench.chance(0.3) else n + 1 for n in place[:-1]), channels)
    if len(place) > 1 and bench.kind.joined and bench.chance(0.3):
        return place[1:]
    return (1 if bench.chance(0.5) else place[0] + 1, *place[1:])


def _tensor(bench: _Bench, announced: Sequence[int | None], place: Sequence[int]) -> Ref:
    shape, rng, kind = (bench.batch, *place), bench.rng, bench.kind
    if kind.whole_numbers:
        dtype = bench.turn.dealt("indices", _INDEX_TYPES)
        return bench.take(announced, _indices(kind, shape, dtype, rng), dtype)
    if kind.name in _OF_IMAGES and bench.turn.dealt("pixels", _PIXELS):
        dtype = _one(_PIXEL_TYPES, rng)
        return bench.take(announced, extremes.pixels(shape, dtype, rng), dtype)
    if bench.way is None and (not bench.inputs or bench.chance(_ALL_INTEGERS)):
        dtype = bench.turn.dealt("integers", _INTEGER_TYPES)
        return bench.take(announced, _any_integers(shape, dtype, rng), dtype)
    dtype = "float32" if bench.chance(_WIDER) else bench.dtype
    return bench.take(announced, extremes.filled(_way(bench), shape, dtype, rng), dtype)


def _filling(kind: Kind) -> list[tuple[str, extremes.Way | None]]:
    """The types and ways that are dealt for the first tensor of a kind."""
    alone = kind.name in _EACH_ALONE
    mixed = extremes.medley if alone else extremes.by_instance
    found: dict[tuple[str, extremes.Way | None], int] = {
        **{(dtype, extremes.usual): count for dtype, count in _USUAL.items()},
        **{(dtype, mixed): count for dtype, count in _MIXED.items()},
        **({} if alone else {("float32", way): 1 for way in extremes.WAYS}),
        ("float32", None): _INTEGERS * kind.arity,
    }
    for way in _told(kind):
        found["float32", way] = found.get(("float32", way), 0) + _TOLD
        found["float16", way] = 1
    return cards(found)


def _told(kind: Kind) -> Sequence[extremes.Way]:
    return next((ways for kinds, ways in _TELLING if kind.name.startswith(kinds)), ())


def _way(bench: _Bench) -> extremes.Way:
    if bench.way is None:
        return extremes.usual
    if not bench.inputs or bench.chance(_MORE_TENSORS_ALIKE):
        return bench.way
    return extremes.usual if bench.chance(0.5) else extremes.any_way


def _indices(kind: Kind, shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Array:
    """What hashes or looks up takes any number; other kinds have so many rows to choose from."""
    if "num_tokens" in kind.parameters or "input_dim" in kind.parameters:
        return extremes.whole_numbers(shape, dtype, _MOST_TOKENS, rng)
    return _any_integers(shape, dtype, rng)


def _any_integers(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Array:
    """Of int64 those that int32 holds too: some libraries have no other; small ones as floats."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "float32":
        return extremes.whole_numbers(shape, dtype, _MOST_TOKENS, rng)
    drawn = "int32" if dtype == "int64" else dtype
    return extremes.any_whole_numbers(shape, drawn, rng).astype(dtype)


def _masked(bench: _Bench, chain: Chain, ref: Ref) -> Ref:
    """Behind a Masking layer, now and then."""
    number = int(ref.producer[1:])
    array = bench.arrays[number]
    share = _MASKED if bench.kind.name in _READ_MASKS else _MASKED_IN_VAIN
    if array.ndim != 3 or array.dtype.kind != "f" or not bench.chance(share):
        return ref
    hidden = ~drawn_mask(array.shape[:2], bench.rng)
    bench.arrays[number] = np.where(hidden[..., None], np.zeros((), array.dtype), array)
    chain.end = ref
    chain.must("Masking", {"mask_value": 0.0, "dtype": bench.inputs[number].dtype})
    return chain.end


def _one(shares: Mapping[T, float], rng: np.random.Generator) -> T:
    keys = list(shares)
    return keys[int(rng.choice(len(keys), p=list(shares.values())))]
