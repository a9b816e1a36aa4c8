"""Derivatives from values beside a point: smooth, at kinks and ties, on one side only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.judge.slopes import UNKNOWN, Point, Slope, is_coarse, slope_of
from outvote.judge.tolerance import PLACE, SLOPE_STEPS


def slope(*terms: Callable[[float], float], x: float) -> Slope:
    return slope_of(SLOPE_STEPS, *sides(*terms, x=x), PLACE["float64"] * size(*terms, x=x))


def sides(*terms: Callable[[float], float], x: float) -> tuple[Array, Array]:
    """What changes above and below: a row for each step, a column for each term."""
    up, down = (
        np.array([[term(x + sign * h) - term(x) for term in terms] for h in SLOPE_STEPS])
        for sign in (1, -1)
    )
    return up, down


def size(*terms: Callable[[float], float], x: float) -> float:
    return sum(abs(term(x)) for term in terms)


def sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


SMOOTH: dict[str, tuple[Callable[[float], float], float, float]] = {
    "line": (lambda x: 3 * x + 7, 0.4, 3.0),
    "square at its bottom": (lambda x: x * x, 0.0, 0.0),
    "steep": (lambda x: math.exp(3 * x), 2.0, 3 * math.exp(6)),
    "curved": (lambda x: math.sin(20 * x), 0.3, 20 * math.cos(6)),
    "beside a large number": (lambda x: 1e6 + x**3, 1.5, 6.75),
    "tanh, saturated": (math.tanh, 4.0, 1 - math.tanh(4) ** 2),
    "relu off its kink": (lambda x: max(x, 0.0), 1e-4, 1.0),
    "root off its end": (sqrt, 0.01, 5.0),
}
KINKS: dict[str, tuple[Callable[[float], float], float, float, float]] = {
    "relu": (lambda x: max(x, 0.0), 0.0, 0.0, 1.0),
    "abs": (abs, 0.0, -1.0, 1.0),
    "clip's border": (lambda x: min(x, 1.0), 1.0, 0.0, 1.0),
    "tie of a maximum": (lambda x: max(2 * x, 3.0), 1.5, 0.0, 2.0),
    "smooth and a kink": (lambda x: math.sin(x) + 0.5 * abs(x), 0.0, 0.5, 1.5),
    "beside a large number": (lambda x: 1e3 + max(x, 0.0), 0.0, 0.0, 1.0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_have_one_slope(name: str) -> None:
    function, x, exact = SMOOTH[name]
    found = slope(function, x=x)
    assert not found.is_kink
    assert found.error < 1e-4 * max(1, abs(exact))
    assert found.holds(exact, 0.0)
    assert not found.holds(exact + 1e-3 * max(1, abs(exact)), 0.0)


def test_each_term_takes_its_own_side_of_a_kink() -> None:
    """Windows of a maximum that share an element which ties in both, one of them counted less."""
    ties = (lambda x: max(1.5 * x, 0.0), lambda x: -max(0.75 * x, 0.0), lambda x: math.sin(x))
    together = slope(lambda x: sum(tie(x) for tie in ties), x=0.0)
    assert (together.low, together.high) == pytest.approx((1.0, 1.75))
    apart = slope(*ties, x=0.0)
    assert (apart.low, apart.high) == pytest.approx((0.25, 2.5))
    assert apart.holds(2.5, 0.0)  # of the first window alone
    assert not apart.holds(2.6, 0.0)


def test_kinks_that_cancel_are_kinks() -> None:
    found = slope(lambda x: abs(x), lambda x: -abs(x), x=0.0)
    assert found.is_kink
    assert (found.low, found.high) == pytest.approx((-2.0, 2.0))


def test_the_noise_of_many_smooth_terms_is_no_kink() -> None:
    terms = [lambda x, k=k: math.sin(k * x) * k for k in range(1, 40)]
    found = slope(*terms, x=0.3)
    assert not found.is_kink
    assert found.holds(sum(k * k * math.cos(0.3 * k) for k in range(1, 40)), 0.0)


@pytest.mark.parametrize("name", KINKS)
def test_kinks_have_an_interval(name: str) -> None:
    function, x, low, high = KINKS[name]
    found = slope(function, x=x)
    assert found.is_kink
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-3)
    assert all(found.holds(value, 0.0) for value in (low, (low + high) / 2, high))
    assert not any(found.holds(value, 0.0) for value in (low - 0.01, high + 0.01, math.nan))


def test_a_root_at_its_end_grows_without_end_on_the_side_that_there_is() -> None:
    found = slope(sqrt, x=0.0)
    assert found.high == math.inf
    assert found.holds(math.inf, 0.0)
    assert not found.holds(math.nan, 0.0)
    assert not found.holds(1.0, 0.0)


def test_a_slope_that_grows_alike_on_both_sides_has_no_end_either() -> None:
    found = slope(lambda x: math.copysign(abs(x) ** 0.25, x), x=0.0)
    assert found.holds(math.inf, 0.0)
    assert not found.holds(1.0, 0.0)


def test_one_side_decides_where_the_other_is_not_defined() -> None:
    found = slope(lambda x: x * sqrt(x) + x if x >= 0 else math.nan, x=0.0)
    assert found.holds(1.0, 0.0)
    assert not found.holds(0.0, 0.0)
    assert slope(lambda x: math.nan, x=0.0) == UNKNOWN
    assert not UNKNOWN.holds(0.0, 1.0)


def point(slope: Slope, **given: float) -> Point:
    return Point("x", 0, (0,), slope, given, allowed=dict.fromkeys(given, 0.01))


def test_a_point_is_clear_where_its_slope_tells_targets_apart() -> None:
    assert point(Slope(1, 1, 0.24), a=1.0, b=2.0).is_clear
    assert not point(Slope(1, 1, 0.26), a=1.0, b=2.0).is_clear
    assert point(Slope(1, 1, 5.0), a=1.0, b=math.nan).is_clear
    assert not point(UNKNOWN, a=1.0, b=math.nan).is_clear


def test_who_is_outside_by_more_than_error_and_rounding_is_wrong() -> None:
    found = point(Slope(0, 1, 0.01), a=-0.019, b=-0.021, c=0.5, d=1.021, e=math.nan, f=1.019)
    assert found.wrong == ("b", "d", "e")


def test_a_clipped_border_that_is_near_is_seen_by_the_smallest_steps() -> None:
    """A loss clips at 1e-7 from 1: at 1 it is flat, though not by most of the steps."""
    found = slope(lambda p: math.log(min(p, 1 - 1e-7)), x=1.0)
    assert found.holds(0.0, 0.0)
    assert not found.holds(0.01, 0.0)


@pytest.mark.parametrize(
    ("function", "coarse"),
    [
        (lambda x: float(np.tanh(np.float32(x))), True),
        (math.tanh, False),
        (lambda x: max(x, 0.5), False),  # flat on one side
        (lambda x: round(x), False),  # flat
        (lambda x: math.log(min(max(x, 1e-7), 1.0)), False),
    ],
)
@pytest.mark.parametrize("x", [0.5, 0.3])
def test_a_function_of_float32_has_no_smaller_steps(
    function: Callable[[float], float], coarse: bool, x: float
) -> None:
    assert is_coarse(SLOPE_STEPS, *sides(function, x=x)) == coarse


def test_a_target_is_held_to_its_own_function_where_that_is_clear() -> None:
    given = {"a": 1.0, "b": 0.0, "c": 0.0}
    own = {"a": Slope(1, 1, 0.0), "b": Slope(0, 0, 0.0), "c": Slope(0, 0, 0.3)}
    found = Point("x", 0, (0,), Slope(1, 1, 0.0), given, dict.fromkeys(given, 0.01), own)
    assert found.is_disputed
    assert found.wrong == ("c",)  # its own is too rough to tell


def test_steps_are_exact_beside_most_numbers() -> None:
    assert np.all(np.diff(np.log2(SLOPE_STEPS)) == -3)
