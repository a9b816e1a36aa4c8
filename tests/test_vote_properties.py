"""Votes, distances and gaps: properties that hold for any targets and any numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conftest import fake
from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.target import Target
from outvote.core.truth import Truth
from outvote.judge.compare import (
    Measured,
    Settings,
    compare,
    compare_all,
    distance,
    only_width_differs,
    pairs_of,
)
from outvote.judge.distances import distance_relative, looks, noise_of, spread
from outvote.judge.patterns import pattern_mad
from outvote.judge.precision import Coarser, coarser, has_no_64_bits
from outvote.judge.rounding import Gap, layer_rounding, model_rounding
from outvote.judge.vote import vote

FEW = settings(max_examples=25)
NAMES = "abcde"
some_pairs = st.lists(st.sampled_from(list(combinations(NAMES, 2))), max_size=6)
libraries = st.fixed_dictionaries(
    {name: st.sampled_from(["one", "two", "three"]) for name in NAMES}
)


def targets_of(libraries: Mapping[str, str]) -> dict[str, Target]:
    return {name: fake(name, library=library) for name, library in libraries.items()}


def components(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    """Who agrees with whom, directly or by others: grown until nothing is added."""
    found = set()
    for name in names:
        group = {name}
        while True:
            more = {x for pair in pairs if group & set(pair) for x in pair} - group
            if not more:
                break
            group |= more
        found.add(frozenset(group))
    return found


@FEW
@example(dict(zip(NAMES, ("one", "two", "one", "two", "three"), strict=True)),
         [("a", "b"), ("c", "d")])  # fmt: skip
@given(libraries, some_pairs)
def test_the_group_with_most_libraries_wins_if_it_is_the_only_one(
    of: dict[str, str], pairs: list[tuple[str, str]]
) -> None:
    voted = vote(targets_of(of), pairs, None)
    groups = components(NAMES, pairs)
    assert {frozenset(group) for group in voted.groups} == groups
    counts = sorted((len({of[name] for name in group}) for group in groups), reverse=True)
    clear = len(counts) > 1 and counts[0] > 1 and counts[0] > counts[1]
    assert voted.decided is clear
    if clear:
        assert len({of[name] for name in voted.majority}) == counts[0]
        assert f"{counts[0]} independent implementations agree" in voted.reason
    assert set(voted.outvoted) == (set(NAMES) - set(voted.majority) if clear else set())


@FEW
@given(libraries, some_pairs, st.permutations(NAMES), st.randoms(use_true_random=False))
def test_the_order_of_names_and_of_agreements_decides_nothing(
    of: dict[str, str], pairs: list[tuple[str, str]], order: list[str], random: Any
) -> None:
    first = vote(targets_of(of), pairs, None)
    turned = [(b, a) if random.random() < 0.5 else (a, b) for a, b in [*pairs, *pairs]]
    random.shuffle(turned)
    second = vote(targets_of({name: of[name] for name in order}), turned, None)
    assert set(map(frozenset, first.groups)) == set(map(frozenset, second.groups))
    assert set(first.majority) == set(second.majority)
    assert set(first.outvoted) == set(second.outvoted)


@FEW
@given(libraries, some_pairs)
def test_an_independent_voice_for_the_winner_changes_no_winner(
    of: dict[str, str], pairs: list[tuple[str, str]]
) -> None:
    before = vote(targets_of(of), pairs, None)
    if not before.decided:
        return
    more = targets_of({**of, "new": "four"})
    after = vote(more, [*pairs, (before.majority[0], "new")], None)
    assert set(after.majority) == {*before.majority, "new"}
    assert set(after.outvoted) == set(before.outvoted)


def test_a_library_that_borrows_a_kernel_has_no_vote_of_its_own_there() -> None:
    lender, lent = fake("lender"), replace(fake("lent"), borrows={"lender": ("*Conv*",)})
    targets = {"lender": lender, "lent": lent, "other": fake("other")}
    assert vote(targets, [("lender", "lent")], "Dense").outvoted == ("other",)
    assert vote(targets, [("lender", "lent")], None).outvoted == ("other",)
    borrowed = vote(targets, [("lender", "lent")], "DepthwiseConv2D")
    assert not borrowed.decided
    assert "one implementation each: lender, lent against other" in borrowed.reason


def test_a_transformed_model_is_held_to_its_original_and_to_nobody_else() -> None:
    twin = replace(fake("t", library="a"), original="a")
    targets = {"a": fake("a"), "t": twin, "b": fake("b")}
    assert pairs_of(targets) == [("a", "t"), ("a", "b")]
    twins = {**targets, "u": replace(twin, name="u")}
    assert ("t", "u") not in pairs_of(twins)
    alone = {name: twins[name] for name in ("t", "b")}
    assert pairs_of(alone) == [("t", "b")]  # its original is not there
    assert pairs_of({name: twins[name] for name in ("t", "u")}) == []
    wrong = vote({name: twins[name] for name in ("a", "t", "u")}, [("t", "u")], None)
    assert (wrong.majority, wrong.outvoted) == (("a",), ("t", "u"))
    both = vote(targets, [("a", "t")], None)
    assert not both.decided  # the other one is no transformation
    assert not vote(targets, [], None).decided


# Distances.

floats = st.floats(-1e6, 1e6, width=32)
rows = hnp.arrays(np.float32, (2, 3), elements=floats)
anything = hnp.arrays(np.float32, (2, 3), elements=st.floats(width=32))


def outputs(*arrays: Array) -> Outputs:
    return Outputs(arrays, tuple(array.dtype.name for array in arrays))


@FEW
@given(anything, anything)
def test_looks_are_symmetric_never_negative_and_zero_on_the_same(a: Array, b: Array) -> None:
    one, other = looks(a, b, "float32"), looks(b, a, "float32")
    np.testing.assert_array_equal(one, other)
    assert not (one < 0).any()
    assert (looks(a, a.copy(), "float32") == 0).all()
    np.testing.assert_array_equal(one[0], distance_relative(a, b))


@FEW
@given(rows, rows, st.sampled_from([2.0, 0.25, -1.0, 1024.0]))
def test_a_relative_distance_does_not_depend_on_the_unit(a: Array, b: Array, unit: float) -> None:
    wide_a, wide_b = a.astype(np.float64) + 1, b.astype(np.float64) + 1
    np.testing.assert_allclose(
        distance_relative(wide_a * unit, wide_b * unit), distance_relative(wide_a, wide_b)
    )


@FEW
@given(rows, rows, st.permutations(range(2)), st.permutations(range(3)))
def test_a_distance_follows_its_instance_and_no_order_of_elements(
    a: Array, b: Array, instances: list[int], elements: list[int]
) -> None:
    found = looks(a, b, "float32")
    moved = looks(a[instances][:, elements], b[instances][:, elements], "float32")
    np.testing.assert_array_equal(moved, found[:, instances])


@FEW
@given(rows, st.floats(0.0, 1.0), st.floats(1.0, 100.0))
def test_what_is_farther_is_not_nearer(a: Array, step: float, times: float) -> None:
    """All are measured by the same number, the largest, which is equal on all sides."""
    a = np.concatenate([np.float64(a), np.full((2, 1), 1e9)], axis=1)
    near, far = a.copy(), a.copy()
    near[0, 0] += step
    far[0, 0] += step * times
    apart = [distance_relative(a, other) for other in (a, near, far)]
    assert 0 == apart[0][0] <= apart[1][0] <= apart[2][0]
    assert apart[2][0] == pytest.approx(abs(far[0, 0] - a[0, 0]) / 1e9)
    assert [found[1] for found in apart] == [0, 0, 0]  # the other instance has not moved


@FEW
@given(st.dictionaries(st.sampled_from(NAMES), st.lists(floats, min_size=2, max_size=2),
                       min_size=1))  # fmt: skip
def test_the_noise_is_that_of_a_target_and_one_wild_target_does_not_raise_it(
    moved: dict[str, list[float]],
) -> None:
    sizes = {name: [abs(value) for value in values] for name, values in moved.items()}
    noise = float(noise_of(sizes))
    worst = sorted(max(values) for values in sizes.values())
    assert noise == worst[(len(worst) - 1) // 2]
    wild = float(noise_of({**sizes, "wild": [math.inf, math.nan]}))
    assert wild <= noise  # what jumps to infinity measures nothing
    assert float(noise_of({name: values[::-1] for name, values in sizes.items()})) == noise


def test_how_much_an_output_depends_on_its_input() -> None:
    assert spread(np.ones((1, 3))) == spread(np.ones((0, 3))) == 0
    assert spread(np.ones((4, 3))) == 0
    assert spread(np.array([[1.0], [2.0]])) == 0.5
    assert spread(np.array([[1.0], [np.nan]])) == 0  # nothing is known of it


# Comparisons.


@FEW
@given(anything, anything, st.booleans())
def test_a_comparison_is_the_same_from_both_sides(a: Array, b: Array, labelled: bool) -> None:
    truth = Truth(labels=np.array([0, 2]), classes=3) if labelled else Truth()
    one = compare(("a", "b"), outputs(a), outputs(b), truth, Settings())
    other = compare(("b", "a"), outputs(b), outputs(a), truth, Settings())
    assert one.inconsistent == other.inconsistent
    assert one.worst_input == other.worst_input
    for x, y in zip(one.measured, other.measured, strict=True):
        np.testing.assert_array_equal(x.distances, y.distances)
        assert (x.pattern, x.inconsistent) == (y.pattern, y.inconsistent)


@FEW
@given(rows, rows, st.floats(0, 1), st.floats(0, 1))
def test_who_tolerates_more_sees_no_more(a: Array, b: Array, less: float, more: float) -> None:
    strict, patient = (
        compare(("a", "b"), outputs(a), outputs(b), Truth(), Settings(tolerance=tolerance))
        for tolerance in sorted((less, more))
    )
    assert strict.inconsistent or not patient.inconsistent


def test_what_reaches_the_threshold_counts_and_nan_does_first() -> None:
    distances = np.array([0.5, np.nextafter(0.5, 0), np.nan, 0.0, 0.7])
    measured = Measured("m", 0, 0.5, distances, pattern_mad(distances))
    assert measured.reached.tolist() == [True, False, True, False, True]
    assert measured.triggering.tolist() == [2, 4, 0]
    assert math.isnan(measured.maximum)
    for needed, counts in ((3.0, True), (3.1, False)):
        assert replace(measured, needed=needed).inconsistent is counts
    equal = replace(measured, threshold=0.0)
    assert equal.reached.tolist() == [True, True, True, False, True]  # what is equal never does
    by_element = replace(measured, elements=np.array([0, 0.25, 0, 0, 0]))
    assert by_element.reached.tolist() == [True, True, True, False, True]


def test_every_pair_is_compared_once_or_those_that_are_named() -> None:
    given_ones = {name: outputs(np.full((1, 1), n, "float32")) for n, name in enumerate("abc")}
    every = compare_all(given_ones, Truth(), Settings())
    assert [c.targets for c in every] == [("a", "b"), ("a", "c"), ("b", "c")]
    (one,) = compare_all(given_ones, Truth(), Settings(), [("c", "a")])
    assert one.targets == ("c", "a")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (np.array([1, 2], "int32"), np.array([1, 2], "int64"), True),
        (np.array([1, 2], "int32"), np.array([1, 3], "int64"), False),
        (np.array([1, 2], "uint8"), np.array([1, 2], "int64"), False),
        (np.array([1.0], "float32"), np.array([1.0], "float64"), False),
        (np.array([1], "int32"), np.array([[1]], "int64"), False),
    ],
)
def test_equal_integers_in_more_or_fewer_bits(a: Array, b: Array, same: bool) -> None:
    assert only_width_differs(outputs(a), outputs(b)) is same
    assert only_width_differs(outputs(b), outputs(a)) is same
    assert distance(outputs(a), outputs(b)) == math.inf  # as results they are of another type


# What rounding explains.


@FEW
@given(rows, rows, hnp.arrays(np.float64, (2, 2), elements=st.floats(0, 1)))
def test_noise_explains_more_and_never_less(a: Array, b: Array, noise: Array) -> None:
    plain = layer_rounding([outputs(a)], 1, 4.0)
    noisy = plain.with_noise([noise])
    assert noisy.gap(outputs(a), outputs(b)).times <= plain.gap(outputs(a), outputs(b)).times
    assert noisy.tolerance >= plain.tolerance
    for rounding in (plain, noisy):
        one, other = rounding.gap(outputs(a), outputs(b)), rounding.gap(outputs(b), outputs(a))
        assert one.times == other.times
        assert rounding.explains(outputs(a), outputs(a))
        assert rounding.explains(outputs(a), outputs(b)) == (one.times < 1)


def test_more_terms_and_narrower_types_are_allowed_more() -> None:
    narrow, wide = outputs(np.ones((1, 1), "float16")), outputs(np.ones((1, 1), "float32"))
    few, many = (layer_rounding([wide], terms, 4.0).tolerance for terms in (1, 10_000))
    assert few < many < layer_rounding([wide, narrow], 1, 4.0).tolerance
    asked = model_rounding([wide, narrow], Settings(tolerance=0.5))
    assert asked.tolerance == 0.5
    with_steps = layer_rounding([outputs(np.ones((1, 1), "int32"))], 1, 4.0)
    assert with_steps.steps == (True,)


@pytest.mark.parametrize(
    ("gap", "times", "explained"),
    [
        (Gap(0.0, 0.0), 0.0, True),
        (Gap(1.0, 0.0), math.inf, False),
        (Gap(math.nan, 1.0), math.inf, False),
        (Gap(0.5, 1.0), 0.5, True),
        (Gap(1.0, 1.0), 1.0, False),
    ],
)
def test_a_gap_is_a_multiple_of_what_is_explained(gap: Gap, times: float, explained: bool) -> None:
    assert (gap.times, gap.explained) == (times, explained)


@pytest.mark.parametrize(
    ("precision", "found"),
    [
        ({}, None),
        ({"products": "tf32"}, Coarser("tf32", False)),
        ({"inference": "f16", "products": "tf32"}, Coarser("f16", True)),
        ({"inference": "float32", "products": "bf16"}, Coarser("bf16", False)),
        ({"inference": "float64"}, None),
    ],
)
def test_what_a_target_declares(precision: dict[str, str], found: Coarser | None) -> None:
    assert coarser(precision) == found
    assert has_no_64_bits({**precision, "x64": False})
    assert not has_no_64_bits(precision)
