"""A layer of its own: any kind, on tensors that are drawn for it, and nothing around it.

Ours. What a model gives its layers is usual; here values come from a pool of extremes, sizes from a
few (so that compiled code is used again) with an odd one now and then, in every floating type, with
masks where there are steps, and batches of one instance and of none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Input, Model, Ref
from outvote.dialects.keras.mutate.catalogue import Kind
from outvote.dialects.keras.mutate.chains import SHAPES, Chain
from outvote.dialects.keras.mutate.corners import draw_last, drawn_kind
from outvote.dialects.keras.mutate.maker import drawn_weight
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate import extremes
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Subject

T = TypeVar("T")
NAME, GROUP = "FL", "layers"
TITLE = "layer on tensors of its own"
_KINDS = 20
_TYPES = {"float32": 0.7, "float16": 0.14, "bfloat16": 0.1, "float64": 0.06}
_BATCHES = {2: 0.72, 1: 0.14, 3: 0.08, 0: 0.06}
_ODD_SHAPES = 0.08
_MOST_ODD = 11
_USUAL = 0.4  # of the tensors; the others are from the pool
_POOLED_WEIGHTS = 0.15
_MASKED = 0.35  # of what has steps
_OTHER_PARTNER = 0.25  # of second tensors: of another length, or one that is spread
_INTEGERS = 0.03  # given to what computes with floats
_MOST_TOKENS = 8  # indices that every kind takes, as its parameters are drawn


@dataclass
class _Bench:
    """What a layer is given, in the making."""

    rng: np.random.Generator
    dtype: str
    batch: int
    inputs: list[Input] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)

    def take(self, place: Sequence[int], array: Array, dtype: str) -> Ref:
        name = f"x{len(self.inputs)}"
        self.inputs.append(Input(name, (None, *place), dtype))
        self.arrays.append(array)
        return Ref(name)


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
    bench = _Bench(rng, _one(_TYPES, rng), _one(_BATCHES, rng))
    place = _place(kind, rng)
    refs = [_tensor(bench, kind, place)]
    for _ in range(kind.arity - 1):
        refs.append(_tensor(bench, kind, _partner(place, rng)))
    base = Subject.of(Model("free", tuple(bench.inputs), (), (refs[0],), "keras"), {})
    weights = _pooled_weight if rng.random() < _POOLED_WEIGHTS else drawn_weight
    chain = Chain(base, refs[0], tools, rng, weights)
    ends = [_masked(bench, chain, ref) for ref in refs]
    chain.end = ends[0]
    dtype = None if bench.dtype == "float32" else bench.dtype
    draw_last(chain, kind, tools, rng, also=ends[1:], dtype=dtype)
    return base.with_layers(chain.layers, (chain.end,), chain.specs).fed(bench.arrays)


def _place(kind: Kind, rng: np.random.Generator) -> tuple[int, ...]:
    rank = int(rng.choice(kind.ranks))
    if rng.random() < _ODD_SHAPES and rank < 5:
        return tuple(int(n) for n in rng.integers(1, _MOST_ODD, rank))
    shapes = SHAPES[rank]
    return shapes[int(rng.integers(len(shapes)))]


def _partner(place: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """The same shape, or one that differs along the first axis."""
    if rng.random() >= _OTHER_PARTNER:
        return place
    return (1 if rng.random() < 0.5 else place[0] + 1, *place[1:])


def _tensor(bench: _Bench, kind: Kind, place: Sequence[int]) -> Ref:
    shape, rng = (bench.batch, *place), bench.rng
    if kind.whole_numbers:
        return bench.take(place, _indices(kind, shape, rng), "int32")
    if rng.random() < _INTEGERS:
        return bench.take(place, extremes.any_whole_numbers(shape, "int32", rng), "int32")
    way = extremes.usual if rng.random() < _USUAL else _way(extremes.WAYS, rng)
    return bench.take(place, extremes.filled(way, shape, bench.dtype, rng), bench.dtype)


def _indices(kind: Kind, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """What hashes or looks up takes any number; other kinds have so many rows to choose from."""
    if "num_tokens" in kind.parameters or "input_dim" in kind.parameters:
        return extremes.whole_numbers(shape, "int32", _MOST_TOKENS, rng)
    return extremes.any_whole_numbers(shape, "int32", rng)


def _masked(bench: _Bench, chain: Chain, ref: Ref) -> Ref:
    """Behind a Masking layer, now and then: whole rows, none, the end of each, or with holes."""
    number = int(ref.producer[1:])
    array, rng = bench.arrays[number], bench.rng
    if array.ndim != 3 or array.dtype.kind != "f" or rng.random() >= _MASKED:
        return ref
    steps = array.shape[1]
    ways = (
        np.zeros(array.shape[:2], bool),
        np.ones(array.shape[:2], bool),
        np.arange(steps) >= rng.integers(0, steps + 1, (array.shape[0], 1)),
        np.arange(steps) < rng.integers(0, steps + 1, (array.shape[0], 1)),
        rng.random(array.shape[:2]) < 0.5,
    )
    hidden = ways[int(rng.integers(len(ways)))]
    bench.arrays[number] = np.where(hidden[..., None], np.zeros((), array.dtype), array)
    chain.end = ref
    chain.must("Masking", {"mask_value": 0.0, "dtype": bench.dtype})
    return chain.end


def _pooled_weight(
    name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> Array:
    """Finite numbers of the pool; what is a variance is not negative."""
    found = extremes.filled(_way(extremes.FINITE, rng), shape, dtype, rng)
    return np.abs(found) if "variance" in name else found


def _way(ways: Sequence[extremes.Way], rng: np.random.Generator) -> extremes.Way:
    return ways[int(rng.integers(len(ways)))]


def _one(shares: Mapping[T, float], rng: np.random.Generator) -> T:
    keys = list(shares)
    return keys[int(rng.choice(len(keys), p=list(shares.values())))]
