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
from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.chains import SHAPES, Chain
from outvote.dialects.keras.mutate.corners import draw_last, drawn_kind
from outvote.dialects.keras.mutate.maker import drawn_weight
from outvote.dialects.keras.mutate.masks import drawn_mask
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate import extremes
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject

T = TypeVar("T")
NAME, GROUP = "FL", "layers"
TITLE = "layer on tensors of its own"
OWN_TENSORS = True
_KINDS = 20
_TYPES = {"float32": 0.7, "float16": 0.14, "bfloat16": 0.1, "float64": 0.06}
_WIDER = 0.2  # of tensors for layers in another type: they are in float32, and Keras casts them
_NARROW = ("float16", "bfloat16")
_MIXED_POLICIES = 0.25  # of the layers in these
_BATCHES = {2: 0.72, 1: 0.14, 3: 0.08, 0: 0.06}
_ODD_SHAPES = 0.08
_MOST_ODD = 11
_FREE = 0.15  # of the cases have sizes that are known at run time alone
_FREE_SIZES = {1: 0.25, 2: 0.25, 3: 0.16, 4: 0.14, 5: 0.15, 0: 0.05}
_FIRST_KNOWN = 0.25  # of those know the first size; the others the last, where channels mostly are
_USUAL = 0.4  # of the tensors; the others are from the pool
_USUAL_ALONE = 0.15  # where each number stands alone, and nothing hides behind an extreme
_TOLD = 0.4  # of those from the pool: a way on which such layers are known to go wrong
_MIXED = 0.35  # of those from the pool: a way of its own for every instance, or for every number
_POOLED_WEIGHTS = 0.15
_OTHER_PARTNER = 0.25  # of second tensors: of another length, one that is spread, of other rank
_THIRD = 0.15  # of what takes two tensors and may take three
_INTEGERS = 0.04  # given to what computes with floats
_PIXELS = 0.25  # of the tensors of what reads images
_INTEGER_TYPES = {"int32": 0.4, "uint8": 0.25, "int8": 0.1, "int64": 0.15, "bool": 0.1}
_PIXEL_TYPES = {"uint8": 0.8, "int32": 0.2}
_INDEX_TYPES = {"int32": 0.65, "int64": 0.2, "uint8": 0.1, "int8": 0.05}
_MOST_TOKENS = 8  # indices that every kind takes, as its parameters are drawn
_TWO_ALONE = ("Dot", "Subtract")
# What computes each number of its output from one number of each input.
_EACH_ALONE = frozenset(
    "Activation ReLU LeakyReLU PReLU ELU Rescaling Normalization BatchNormalization Discretization "
    "Solarization Add Average Maximum Minimum Multiply Subtract Identity UpSampling1D".split()
)
_OF_IMAGES = frozenset(
    "AutoContrast CenterCrop ContrastLimitedAdaptiveHistogramEqualization Equalization RandomCrop "
    "Rescaling Resizing Solarization".split()
)
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
    for _ in range(_KINDS):
        kind = drawn_kind(tools, rng)
        try:
            return _alone(kind, tools, rng)
        except Impossible:
            continue
    raise Impossible("none of the drawn kinds fits")


def _alone(kind: Kind, tools: KerasTools, rng: np.random.Generator) -> Subject:
    bench = _Bench(rng, kind, _one(_TYPES, rng), _one(_BATCHES, rng))
    refs = _tensors(bench, _place(kind, rng))
    bench.read = len(refs)
    base = Subject.of(Model("free", tuple(bench.inputs), (), (refs[0],), "keras"), {})
    weights = _pooled_weight if bench.chance(_POOLED_WEIGHTS) else drawn_weight
    chain = Chain(base, refs[0], tools, rng, weights)
    ends = [_masked(bench, chain, ref) for ref in refs]
    chain.end = ends[0]
    dtype = None if bench.dtype == "float32" else bench.dtype
    if dtype in _NARROW and bench.chance(_MIXED_POLICIES):
        dtype = f"mixed_{dtype}"  # computes in it, and keeps weights in float32
    arguments = partial(_arguments, bench, chain)
    draw_last(chain, kind, tools, rng, ends[1:], dtype, arguments)
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
    return drawn_arguments(kind.arguments, call)


def _place(kind: Kind, rng: np.random.Generator) -> tuple[int, ...]:
    rank = int(rng.choice(kind.ranks))
    if rng.random() < _ODD_SHAPES and rank < 5:
        return tuple(int(n) for n in rng.integers(1, _MOST_ODD, rank))
    shapes = SHAPES[rank]
    return shapes[int(rng.integers(len(shapes)))]


def _tensors(bench: _Bench, place: tuple[int, ...]) -> list[Ref]:
    """What the kind reads: of one place, or of such as are spread over each other."""
    count = bench.kind.arity
    if count == 2 and bench.kind.name not in _TWO_ALONE and bench.chance(_THIRD):
        count = 3
    free = bench.chance(_FREE)
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
        dtype = _one(_INDEX_TYPES, rng)
        return bench.take(announced, _indices(kind, shape, dtype, rng), dtype)
    if kind.name in _OF_IMAGES and bench.chance(_PIXELS):
        dtype = _one(_PIXEL_TYPES, rng)
        return bench.take(announced, extremes.pixels(shape, dtype, rng), dtype)
    if bench.chance(_INTEGERS):
        dtype = _one(_INTEGER_TYPES, rng)
        return bench.take(announced, _any_integers(shape, dtype, rng), dtype)
    dtype = "float32" if bench.chance(_WIDER) else bench.dtype
    return bench.take(announced, extremes.filled(_way(bench), shape, dtype, rng), dtype)


def _way(bench: _Bench) -> extremes.Way:
    kind = bench.kind.name
    alone = kind in _EACH_ALONE
    if bench.chance(_USUAL_ALONE if alone else _USUAL):
        return extremes.usual
    telling = next((ways for kinds, ways in _TELLING if kind.startswith(kinds)), ())
    if telling and bench.chance(_TOLD):
        return _one_way(telling, bench.rng)
    if bench.chance(_MIXED):
        return extremes.medley if alone else extremes.by_instance
    return _one_way(extremes.WAYS, bench.rng)


def _indices(kind: Kind, shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Array:
    """What hashes or looks up takes any number; other kinds have so many rows to choose from."""
    if "num_tokens" in kind.parameters or "input_dim" in kind.parameters:
        return extremes.whole_numbers(shape, dtype, _MOST_TOKENS, rng)
    return _any_integers(shape, dtype, rng)


def _any_integers(shape: Sequence[int], dtype: str, rng: np.random.Generator) -> Array:
    """Of int64 those that int32 holds too: some libraries have no other."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
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


def _pooled_weight(
    name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> Array:
    """Finite numbers of the pool; what is a variance is not negative."""
    found = extremes.filled(_one_way(extremes.FINITE, rng), shape, dtype, rng)
    return np.abs(found) if "variance" in name else found


def _one_way(ways: Sequence[extremes.Way], rng: np.random.Generator) -> extremes.Way:
    return ways[int(rng.integers(len(ways)))]


def _one(shares: Mapping[T, float], rng: np.random.Generator) -> T:
    keys = list(shares)
    return keys[int(rng.choice(len(keys), p=list(shares.values())))]
