"""What targets made of one specimen: the kind of difference, and who stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from conftest import fake
from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run
from outvote.judge.observation import Observation, error_head, kind_of, observed
from outvote.judge.rounding import Rounding

ONE = np.array([[1.0, 2.0]], "float32")
FAILED = Run("c", Outcome.ERROR, message="bad axis 3 of 'dense_1'", error="ValueError")


def outputs(array: Array) -> Outputs:
    return Outputs((array,), (array.dtype.name,))


def observation(
    results: Mapping[str, Array], failures: Mapping[str, Run] | None = None
) -> Observation:
    found = {name: outputs(array) for name, array in results.items()}
    names = [*found, *(failures or {})]
    rounding = Rounding(((1e-6, 0.25),))
    given_ones = [np.ones((1, 2), "float32")]
    voters = {name: fake(name) for name in names}
    return observed(given_ones, found, failures or {}, rounding, voters, "Dense")


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (ONE.copy(), None),
        (ONE * 2, "inconsistency"),
        (np.array([[np.nan, 2.0]], "float32"), "nan"),
        (ONE[:, :1], "shape"),
        (ONE.astype("float64"), "shape"),
    ],
)
def test_what_kind_of_difference_it_is_and_who_stands_alone(other: Array, kind: str | None) -> None:
    seen = observation({"a": ONE, "b": ONE, "c": other})
    assert seen.kind == kind
    assert seen.odd == (("c",) if kind else ("a", "b", "c"))
    for order in permutations("abc"):
        arrays = {"a": ONE, "b": ONE, "c": other}
        again = observation({name: arrays[name] for name in order})
        assert again.symptom() == seen.symptom()
        assert set(again.odd) == set(seen.odd)
    if kind:
        assert (
            kind_of(outputs(ONE), outputs(other)) == kind_of(outputs(other), outputs(ONE)) == kind
        )


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [(Outcome.ERROR, "crash"), (Outcome.HANG, "hang"), (Outcome.CRASH, "crash")],
)
def test_one_that_fails_stands_against_those_that_answer(outcome: Outcome, kind: str) -> None:
    seen = observation({"a": ONE, "b": ONE}, {"c": replace(FAILED, outcome=outcome)})
    assert (seen.kind, seen.vote.outvoted) == (kind, ("c",))


def test_where_nobody_answers_nothing_is_held_against_anybody() -> None:
    died = replace(FAILED, target="d", outcome=Outcome.CRASH)
    seen = observation({}, {"c": FAILED, "d": died})
    assert (len(seen.vote.groups), seen.kind) == (2, None)


def test_where_pairs_differ_in_several_ways_the_plainest_is_told() -> None:
    nan = np.array([[np.nan, 2.0]], "float32")
    assert observation({"a": ONE, "b": nan, "c": ONE[:, :1]}).kind == "shape"
    assert observation({"a": ONE, "b": nan, "c": ONE * 2}).kind == "nan"


def test_equal_integers_of_other_widths_agree_beside_a_failure_only() -> None:
    narrow, wide = np.array([[1, 2]], "int32"), np.array([[1, 2]], "int64")
    assert observation({"a": narrow, "b": wide}).kind == "shape"
    seen = observation({"a": narrow, "b": wide}, {"c": FAILED})
    assert (seen.kind, seen.vote.outvoted) == ("crash", ("c",))


def test_an_error_is_the_same_whatever_numbers_and_names_it_speaks_of() -> None:
    other = replace(FAILED, message="bad axis 17 of 'conv_9'")
    assert error_head(FAILED) == error_head(other) == "error ValueError bad axis of"
    assert error_head(replace(FAILED, message="bad shape")) != error_head(FAILED)
    assert error_head(replace(FAILED, outcome=Outcome.CRASH)) != error_head(FAILED)
