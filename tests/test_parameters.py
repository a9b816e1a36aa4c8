"""The API configurations against the installed Keras: none is missing, stale or of a wrong type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from outvote.core.blobs import BlobStore
from outvote.core.model import Layer, Ref
from outvote.core.protocol import AttemptLayer, KindsListed, ListKinds
from outvote.core.target import Outcome
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Maker
from outvote.dialects.keras.mutate.parameters import (
    EXCEPTIONS,
    ILLEGAL,
    PARAMETERS,
    parameter,
)
from outvote.dialects.keras.mutate.values import LEFT_ALONE, Draw, for_channels
from outvote.dialects.keras.mutate.variants import current, others, same, variant
from outvote.mutate.subject import Spec
from outvote.mutate.tools import value_class
from outvote.run.pool import Pool, asker

# What a default may be where it is not None; a size may come as one number or one per axis.
TYPES: Mapping[str, tuple[type, ...]] = {
    "count": (int,),
    "sizes": (int, tuple, list),
    "choice": (str,),
    "flag": (bool,),
    "float": (float, int),
    "axis": (int,),
    "axes": (int, tuple, list),
    "shape": (int, tuple, list),
    "text": (str,),
    "numbers": (tuple, list),
    "layer": (),
}
PLACES = {
    1: ((12,),),
    2: ((6, 4), (9, 6)),
    3: ((6, 8, 4), (9, 9, 6)),
    4: ((4, 4, 3, 2), (6, 6, 6, 6)),
    5: ((2, 3, 4, 3, 2), (2, 5, 5, 5, 2)),
}


def test_every_type_has_illegal_values_or_says_why_not() -> None:
    assert {row.type for row in [*PARAMETERS.values(), *EXCEPTIONS.values()]} == set(ILLEGAL)
    assert set(ILLEGAL) == set(TYPES)
    for name, row in PARAMETERS.items():
        assert (row.type == "flag") == (row.illegal == ()), name
        assert not any(same(a, b) for a in row.corners for b in row.illegal), name


def test_values_fall_into_classes() -> None:
    given = [None, True, "same", 0, 1, -1, 4, 5, [2, 2], [1, 2], [2, 4], 0.0, 1e-12, 0.5, -1e30]
    assert [value_class(v) for v in given] == (
        "none true same 0 1 -1 even odd even mixed even zero tiny usual -huge".split()
    )


def test_one_number_means_the_same_as_one_for_each_axis() -> None:
    assert same(2, [2, 2])
    assert not same([2, 1], 2)
    assert not same(1, True)
    assert not same(1, 1.0)
    assert 1 not in others("Conv2D", "strides", [1, 1])
    assert others("Conv2D", "no_such_parameter", 1) == []


@pytest.mark.parametrize("axis", [-1, 2, [-1], [2], (2,)])
def test_statistics_of_channels_are_drawn_for_an_axis_as_a_built_layer_tells_it(axis: Any) -> None:
    draws = [
        for_channels(Draw("Normalization", (3, 2), np.random.default_rng(n), (), False,
                          {"axis": axis}), 0.5)
        for n in range(40)
    ]  # fmt: skip
    assert {str(value) for value in draws} == {"0.5", "[0.5, 0.75]"}


def test_statistics_of_several_axes_are_one_number() -> None:
    for axis in ([1, 2], [], None):
        rng = np.random.default_rng(0)
        drawn = Draw("Normalization", (3, 2), rng, (), False, {"axis": axis})
        assert {for_channels(drawn, 0.5) for _ in range(20)} == {0.5}


@pytest.fixture(scope="module")
def found(real_pool: Pool) -> KindsListed:
    return real_pool.ask("torch", ListKinds()).reply


@pytest.mark.frameworks
def test_no_row_is_missing_and_none_is_stale(found: KindsListed) -> None:
    kinds = Catalogue.of(found).kinds
    real = {(kind, p["name"]) for kind in kinds for p in found.kinds[kind]}
    names = {name for _, name in real}
    assert names - set(PARAMETERS) - LEFT_ALONE == set(), "Keras has parameters without a row"
    assert set(PARAMETERS) - names == set(), "rows that no layer of Keras has"
    assert LEFT_ALONE - names == set(), "parameters left alone that no layer of Keras has"
    assert set(EXCEPTIONS) - real == set(), "exceptions for what Keras does not have"


@pytest.mark.frameworks
def test_the_types_are_those_of_the_defaults(found: KindsListed) -> None:
    wrong = []
    for kind in Catalogue.of(found).kinds:
        for told in found.kinds[kind]:
            row = parameter(kind, told["name"])
            default = told["default"]
            if row is None or told["name"] in LEFT_ALONE or default is None:
                continue
            if not isinstance(default, TYPES[row.type]) or (
                row.type != "flag" and isinstance(default, bool)
            ):
                wrong.append((kind, told["name"], row.type, default))
    assert wrong == []


@pytest.mark.frameworks
def test_every_corner_is_legal_somewhere(real_pool: Pool, found: KindsListed) -> None:
    """A corner that Keras refuses for all kinds and places is no legal value."""
    catalogue = Catalogue.of(found)
    maker = Maker(asker(real_pool, "torch"), real_pool.blobs)
    refused = {
        (name, str(value)): value for name, row in PARAMETERS.items() for value in row.corners
    }
    rng = np.random.default_rng(0)
    for kind in catalogue.kinds.values():
        for place in (p for rank in kind.ranks for p in PLACES[rank]):
            open_ones = [key for key in refused if key[0] in kind.parameters]
            for key in open_ones:
                drawn = kind.draw(place, rng, catalogue.activations, False)
                chosen = {n: v for n, v in drawn.items() if n in kind.required}
                dtype = "int32" if kind.whole_numbers else "float32"
                given = [Spec((None, *place), dtype)] * kind.arity
                parameters = {**chosen, key[0]: refused[key]}
                if maker.make(kind.name, parameters, given, kind.joined) is not None:
                    del refused[key]
    assert list(refused) == []


@pytest.mark.frameworks
def test_a_variant_keeps_what_it_can_of_the_weights(real_pool: Pool, found: KindsListed) -> None:
    catalogue = Catalogue.of(found)
    blobs: BlobStore = real_pool.blobs
    maker = Maker(asker(real_pool, "torch"), blobs)
    rng = np.random.default_rng(0)
    given = [Spec((None, 8, 8, 2), "float32")]
    made = maker.make("Conv2D", {"filters": 4, "kernel_size": 3}, given)
    assert made is not None
    layer: Layer = maker.layer(made, "conv", [Ref("x")], rng)
    now = current(catalogue.kinds["Conv2D"], layer)
    assert (now["filters"], now["dtype"]) == (4, "float32")
    strided = variant(layer, {**now, "strides": 2}, given, maker, rng)
    assert strided is not None
    assert strided[0].weights == layer.weights
    assert strided[1].outputs == (Spec((None, 3, 3, 4), "float32"),)
    smaller = variant(layer, {**now, "kernel_size": 2}, given, maker, rng)
    assert smaller is not None
    kernel, bias = smaller[0].weights
    assert (kernel.shape, bias) == ((2, 2, 2, 4), layer.weights[1])
    old = np.asarray(blobs.get(layer.weights[0].digest)).reshape(-1)
    assert np.array_equal(np.asarray(blobs.get(kernel.digest)).reshape(-1), old[:32])
    assert variant(layer, {**now, "strides": 0}, given, maker, rng) is None


def test_draws_stay_legal_by_type() -> None:
    rng = np.random.default_rng(0)
    for name, row in PARAMETERS.items():
        if row.type != "flag":
            continue
        draw = Draw("BatchNormalization", (4, 4, 2), rng, ["relu"], False)
        assert isinstance(row.draw(draw), bool), name


@pytest.mark.frameworks
@pytest.mark.parametrize("target", ["tensorflow", "jax", "torch"])
def test_a_legal_layer_is_accepted_and_an_illegal_one_refused(real_pool: Pool, target: str) -> None:
    """The attempt itself works: what it refuses is the value, not the way it asks."""

    def attempt(**parameters: Any) -> Any:
        request = AttemptLayer(
            kind="Conv2D",
            parameters={"filters": 2, "kernel_size": 3, **parameters},
            given=(((None, 8, 8, 2), "float32"),),
            joined=False,
            steps=1,
        )
        return real_pool.ask(target, request)

    accepted = attempt(strides=2)
    assert accepted.ok, accepted.message
    assert accepted.reply.shapes == [[2, 3, 3, 2]]
    refused = attempt(strides=0)
    assert refused.outcome is Outcome.ERROR
    assert "strides" in refused.message
