"""Inputs as pictures, and numbers as JSON holds them."""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from outvote.core.arrays import Array
from outvote.core.result import number, picture, plain


def seen(array: Array, limits: tuple[float, float] | None = None) -> Array:
    """What a browser shows of a picture."""
    text = picture(array, limits)
    assert text is not None
    head, _, data = text.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_the_darkest_number_is_black_and_the_brightest_white() -> None:
    ramp = np.linspace(-3.0, 5.0, 64).reshape(8, 8)
    shown = seen(ramp)
    assert (shown.min(), shown.max()) == (0, 255)
    assert (np.diff(shown.reshape(-1).astype(int)) >= 0).all()
    np.testing.assert_array_equal(seen(ramp[..., None]), shown)


def test_limits_are_those_of_all_pictures_and_cut_off_what_is_beyond() -> None:
    array = np.full((8, 8), 0.5)
    array[0, 0], array[0, 1] = -9, 9
    shown = seen(array, (0.0, 1.0))
    assert [int(n) for n in shown[0, :3]] == [0, 255, 127]


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_does_not_hide_the_rest(odd: float) -> None:
    ramp = np.linspace(0.0, 1.0, 64).reshape(8, 8)
    spoilt = ramp.copy()
    spoilt[4, 4] = odd
    shown = seen(spoilt)
    assert shown[4, 4] == (255 if odd > 0 else 0)
    others = np.ones((8, 8), bool)
    others[4, 4] = False
    np.testing.assert_array_equal(shown[others], seen(ramp)[others])


@pytest.mark.parametrize(
    "array",
    [
        np.full((8, 8), np.nan),
        np.full((8, 8), np.inf),
        np.full((8, 8), 7.0),
        np.where(np.eye(8) > 0, 1.7e308, -1.7e308),
        np.zeros((4, 4, 3), bool),
        np.full((4, 5, 1), 200, np.uint8),
    ],
)
def test_a_picture_of_anything_is_a_picture(array: Array) -> None:
    """Without a warning: in these tests they are errors."""
    shown = seen(array)
    assert shown.shape[:2] == array.shape[:2]
    assert shown.dtype == np.uint8


@pytest.mark.parametrize(
    "shape", [(8,), (7, 8), (8, 7), (4, 4, 2), (3, 4, 3), (4, 4, 4), (2, 8, 8, 3), (0, 8), ()]
)
def test_what_does_not_look_like_one_is_none(shape: tuple[int, ...]) -> None:
    assert picture(np.zeros(shape)) is None


def test_a_table_of_integers_is_none() -> None:
    assert picture(np.zeros((8, 8), np.int64)) is None


odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.floats(width=32).map(np.float32)
    | st.integers(-9, 9).map(np.int64),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)


@settings(max_examples=25)
@given(odd_values)
def test_what_is_plain_is_json_as_the_standard_has_it(value: Any) -> None:
    found = plain(value)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert plain(found) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (math.nan, None),
        (-math.inf, None),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        ((1, (2.0, "a")), [1, [2.0, "a"]]),
        ({1: math.inf}, {"1": None}),
        (True, True),
    ],
)
def test_numbers_that_json_has_not_are_null(value: Any, found: Any) -> None:
    assert plain(value) == found
    assert type(plain(value)) is type(found)


@pytest.mark.parametrize("value", [np.zeros(2), {1, 2}, b"x", object(), 1j])
def test_a_result_holds_nothing_else(value: Any) -> None:
    with pytest.raises(TypeError, match=f"Received: {type(value).__name__}"):
        plain({"deep": [value]})


def test_a_number_that_is_none_stays_none() -> None:
    assert [number(v) for v in (None, math.nan, math.inf, 2)] == [None, None, None, 2.0]
