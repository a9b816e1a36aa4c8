"""Sums of products, their terms added one after the other in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.model import Layer, Weight
from outvote.core.states import State
from outvote.dialects.onnx.nouns.node import WEIGHT, ref
from outvote.dialects.onnx.reference import reference
from outvote.dialects.onnx.sums import in_turn
from outvote.judge.tolerance import FARTHER

RNG = np.random.default_rng(0)


def node(kind: str, config: dict[str, Any], *weights: Array) -> Layer:
    told = tuple(Weight(f"w{n}", f"w{n}", array.shape) for n, array in enumerate(weights))
    args = [ref("x"), *({WEIGHT: n} for n in range(len(weights)))]
    return Layer("y", kind, config, args=args, weights=told, origin={"opset": {"": 17}})


def both(kind: str, config: dict[str, Any], *arrays: Array) -> tuple[Array, list[Array]]:
    """The exact result, and the sums in each order."""
    x, *weights = arrays
    layer, given = node(kind, config, *weights), [State(x)]
    exact = reference(layer, weights, given)
    assert exact is not None
    return exact[0], [found for (found,) in in_turn(layer, weights, given)]


def whole(*shape: int) -> Array:
    """Numbers whose sums float32 holds."""
    return RNG.integers(-4, 5, size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "config", "shapes", "orders"),
    [
        ("MatMul", {}, [(3, 2, 5), (5, 4)], 1),
        ("Gemm", {"transA": 1, "alpha": 0.5}, [(5, 2), (5, 3)], 1),
        ("Gemm", {"transB": 1, "beta": 2.0}, [(2, 5), (3, 5), (3,)], 1),
        ("Conv", {"pads": [1, 0, 2, 1]}, [(2, 3, 6, 5), (4, 3, 2, 3), (4,)], 2),
        ("Conv", {"strides": [2], "dilations": [2], "group": 2}, [(1, 4, 9), (6, 2, 3)], 2),
        ("Conv", {"auto_pad": "SAME_LOWER"}, [(1, 1, 3, 4, 2), (2, 1, 2, 2, 2)], 2),
    ],
)
def test_without_rounding_they_are_what_the_formula_gives(
    kind: str, config: dict[str, Any], shapes: list[tuple[int, ...]], orders: int
) -> None:
    exact, sums = both(kind, config, *(whole(*shape) for shape in shapes))
    assert len(sums) == orders
    for found in sums:
        assert np.array_equal(found, exact)


def test_terms_that_are_alike_drift() -> None:
    """As in the networks with constant weights that the onnx package brings."""
    x, w = np.full((1, 8000), 0.1, np.float32), np.ones((8000, 1), np.float32)
    exact, (found,) = both("MatMul", {}, x, w)
    assert found[0, 0] == np.add.accumulate(x[0])[-1]
    assert abs(found - exact)[0, 0] > 500 * np.spacing(np.float32(exact[0, 0]))


def test_channels_first_and_last_are_two_orders() -> None:
    x = RNG.uniform(1, 2, (1, 64, 5, 5)).astype(np.float32)
    _, (first, last) = both("Conv", {}, x, np.full((1, 64, 3, 3), 0.02, np.float32))
    seen = x[0, :, 1:4, 1:4] * np.float32(0.02)
    assert first[0, 0, 1, 1] == np.add.accumulate(seen.reshape(-1))[-1]
    assert last[0, 0, 1, 1] == np.add.accumulate(seen.reshape(64, 9).T.reshape(-1))[-1]


def test_products_of_fewer_bits_are_farther_than_that() -> None:
    """TF32 has 10 bits behind the point: such a result is not excused."""
    x, w = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 2048), (2048, 4)))
    exact, (found,) = both("MatMul", {}, x, w)
    coarse = [(a.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(np.float64) for a in (x, w)]
    error = np.abs(coarse[0] @ coarse[1] - exact).max()
    assert error > 10 * FARTHER * np.abs(found - exact).max()


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_only_float32_is_added_in_float32(dtype: str) -> None:
    w = np.ones((4, 2), dtype)
    assert in_turn(node("MatMul", {}, w), [w], [State(np.ones((1, 4), dtype))]) == []


def test_what_is_no_such_sum_has_none() -> None:
    x = np.ones((1, 4), np.float32)
    assert in_turn(node("Relu", {}), [], [State(x)]) == []
    assert in_turn(node("Gemm", {"mystery": 1}, x.T), [x.T], [State(x)]) == []
    vector = np.ones(4, np.float32)
    assert in_turn(node("MatMul", {}, vector), [vector], [State(x)]) == []
