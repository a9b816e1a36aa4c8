"""The pool of numbers that break things: each way has its property, in every floating type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.dialects.keras.mutate.rules import free
from outvote.dialects.keras.mutate.tools import keras_tools
from outvote.mutate import extremes
from outvote.mutate.extremes import FINITE, WAYS, Way, filled
from outvote.mutate.subject import Subject
from outvote.run.local import LocalPool

TYPES = ("float16", "bfloat16", "float32", "float64")
SHAPE = (8, 6, 4)
SMALLEST = {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}


def drawn(way: Way, dtype: str) -> Any:
    return filled(way, SHAPE, dtype, np.random.default_rng(0))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_tensor_has_its_shape_and_numbers_that_its_type_holds(way: Way, dtype: str) -> None:
    found = drawn(way, dtype)
    assert found.shape == SHAPE
    assert found.dtype.name == ("float32" if dtype == "bfloat16" else dtype)
    assert np.isfinite(found).all() == (way in FINITE)
    if dtype == "bfloat16":
        held = found[np.isfinite(found)]
        assert not np.any(held.view(np.uint32) & 0xFFFF)


@pytest.mark.parametrize("dtype", TYPES)
def test_ways_do_what_they_are_called(dtype: str) -> None:
    def of(way: Way) -> Any:
        return drawn(way, dtype).astype(np.float64)

    with np.errstate(over="ignore"):
        narrow = np.float32 if dtype == "bfloat16" else np.dtype(dtype).type
        assert np.isinf(np.square(of(extremes.huge).astype(narrow))).any()
    small = np.abs(of(extremes.subnormal))
    assert ((small > 0) & (small < SMALLEST[dtype])).any()
    assert len(np.unique(of(extremes.ties))) <= 5
    zeros = of(extremes.signed_zeros)
    assert np.signbit(zeros[zeros == 0]).any()
    assert not np.signbit(zeros[zeros == 0]).all()
    spread = of(extremes.offset)
    assert abs(spread.mean()) > 10 * spread.std()
    constant = of(extremes.constant)
    assert (constant == constant[:1, :1]).all()


def test_indices_stay_below_their_limit_and_others_reach_the_borders_of_their_type() -> None:
    rng = np.random.default_rng(0)
    indices = extremes.whole_numbers((50, 4), "int32", 8, rng)
    assert (indices.min(), indices.max()) == (0, 7)
    numbers = extremes.any_whole_numbers((50, 4), "int32", rng)
    assert {np.iinfo("int32").min, np.iinfo("int32").max} <= set(numbers.ravel().tolist())


@pytest.fixture(scope="module")
def layers() -> Iterator[list[Subject]]:
    """What the rule draws of the few kinds of the fake target."""
    with LocalPool([fake("a")]) as pool:
        pool.start()
        tools = keras_tools(pool, "a")
        seed = Subject(None, {})  # type: ignore[arg-type]  # it needs no place in a model
        made = [free.apply(seed, None, tools, np.random.default_rng(n)) for n in range(120)]
        again = free.apply(seed, None, tools, np.random.default_rng(7))
        assert again.model == made[7].model
        assert all(
            np.array_equal(a, b, equal_nan=True)
            for a, b in zip(again.inputs, made[7].inputs, strict=True)
        )
        yield made


def test_a_free_layer_reads_inputs_of_its_own(layers: list[Subject]) -> None:
    for one in layers:
        assert len(one.inputs) == len(one.model.inputs)
        for item, array in zip(one.model.inputs, one.inputs, strict=True):
            assert array.shape[1:] == tuple(item.shape[1:])
        assert one.model.outputs[0].producer == one.model.layers[-1].name


def test_free_layers_see_every_size_of_batch_type_and_special_number(layers: list[Subject]) -> None:
    assert {len(one.inputs[0]) for one in layers} == {0, 1, 2, 6}
    assert {item.dtype for one in layers for item in one.model.inputs} >= {"float32", "float16"}
    floats = [a for one in layers for a in one.inputs if a.dtype.kind == "f" and a.size]
    assert any(np.isnan(a).any() for a in floats)
    assert any(np.isinf(a).any() for a in floats)
