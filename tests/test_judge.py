"""Distances, patterns, truth and votes: the papers' formulas on numbers worked out by hand."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conftest import fake
from outvote.core.arrays import Array
from outvote.core.errors import UsageError
from outvote.core.outputs import Outputs
from outvote.core.truth import Truth
from outvote.dialects.keras.targets import BUILT_IN
from outvote.judge.compare import Settings, compare
from outvote.judge.distances import (
    accuracy,
    class_score,
    distance_class,
    distance_mad,
    distance_relative,
)
from outvote.judge.patterns import pattern_class, pattern_mad, pattern_relative
from outvote.judge.truth import interpret, presumed
from outvote.judge.vote import vote

NAN = float("nan")


def test_class_distance_of_the_papers_example() -> None:
    """Figure 2: petri dish is first on TensorFlow, outside the top five on CNTK: 16."""
    labels = np.array([0, 0])
    first = np.array([[9.0, 1, 2, 3, 4, 5, 6], [9, 1, 2, 3, 4, 5, 6]])
    other = np.array([[0.0, 1, 2, 3, 4, 5, 6], [4.5, 1, 2, 3, 4, 5, 6]])
    np.testing.assert_array_equal(class_score(labels, first, 5), [16, 16])
    np.testing.assert_array_equal(distance_class(labels, first, other), [16, 16 - 4])


def test_ties_rank_like_a_stable_sort() -> None:
    assert class_score(np.array([1]), np.array([[5.0, 5, 5]]), 5)[0] == 8


def test_nan_has_no_class_score_and_never_passes_for_agreement() -> None:
    labels = np.array([0])
    clean, dirty = np.array([[1.0, 0]]), np.array([[1.0, NAN]])
    assert np.isnan(distance_class(labels, clean, dirty)[0])
    a, b = (Outputs((o,), ("float32",)) for o in (clean, dirty))
    found = compare(("a", "b"), a, b, Truth(labels=labels, classes=2), Settings())
    assert [m.inconsistent for m in found.measured] == [True, True, True]


def test_mad_distance_of_the_papers_example() -> None:
    """Dave-2: truth 0.0, predictions 0.4 and -0.1: 0.6."""
    d = distance_mad(Truth(given=np.array([[0.0]])), np.array([[0.4]]), np.array([[-0.1]]))
    np.testing.assert_allclose(d, [0.6])


def test_two_who_give_another_shape_than_the_truth_are_compared_without_mad() -> None:
    """The truth may be what a third target gives."""
    a, b = (Outputs((np.full((1, 7, 8), x, np.float32),), ("float32",)) for x in (1.0, 2.0))
    for truth, metrics in (((1, 7, 7), {"relative"}), ((1, 7, 8), {"relative", "mad"})):
        found = compare(("a", "b"), a, b, Truth(given=np.zeros(truth)), Settings())
        assert {m.name for m in found.measured} == metrics


def test_mad_of_two_perfect_answers_is_zero() -> None:
    truth = np.array([[1.0, 0.0]])
    assert distance_mad(Truth(given=truth), truth, truth)[0] == 0
    assert distance_mad(Truth(labels=np.array([0]), classes=2), truth, truth)[0] == 0


outputs = hnp.arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6))


@given(outputs, outputs, hnp.arrays(np.int64, 3, elements=st.integers(0, 3)))
def test_distances_are_symmetric_zero_on_equals_and_bounded(a: Array, b: Array, y: Array) -> None:
    for measure, top in (
        (lambda p, q: distance_class(y, p, q), 16),
        (lambda p, q: distance_mad(Truth(labels=y, classes=4), p, q), 1),
        (distance_relative, 2),
    ):
        d = measure(a, b)
        np.testing.assert_array_equal(d, measure(b, a))
        assert ((d >= 0) & (d <= top)).all()
        assert (measure(a, a) == 0).all()


def test_a_permutation_that_keeps_every_sum_is_seen() -> None:
    a = np.array([[1.0, 2.0, 3.0]])
    assert distance_relative(a, a[:, ::-1])[0] == pytest.approx(2 / 3)


def test_nan_on_both_sides_agrees_and_on_one_side_does_not() -> None:
    a = np.array([[1.0, NAN], [1.0, NAN], [np.inf, 1.0]])
    b = np.array([[1.0, NAN], [1.0, 2.0], [np.inf, 1.0]])
    d = distance_relative(a, b)
    assert d[0] == 0
    assert np.isnan(d[1])
    assert d[2] == 0


@pytest.mark.parametrize("value", [NAN, np.inf, -np.inf])
def test_what_has_no_number_on_both_sides_agrees_by_every_metric(value: float) -> None:
    """The same NaN or infinity: SPEC asks for NaN on some and not on others."""
    same = np.array([[value, 0.2, 0.1], [0.5, 0.2, 0.1]], "float32")
    a, b = (Outputs((array,), ("float32",)) for array in (same, same.copy()))
    for truth in (
        Truth(labels=np.array([0, 1]), classes=3),
        Truth(labels=np.array([1, 1]), classes=3),
        Truth(given=np.zeros((2, 3))),
    ):
        found = compare(("a", "b"), a, b, truth, Settings())
        assert {m.name: m.distances.tolist() for m in found.measured} == {
            m.name: [0, 0] for m in found.measured
        }
        one = Outputs((np.array([[0.9, 0.2, 0.1], [0.5, 0.2, 0.1]], "float32"),), ("float32",))
        apart = compare(("a", "b"), a, one, truth, Settings())
        assert apart.inconsistent


def test_labels_count_as_one_hot_without_being_written_out() -> None:
    """A language model has gigabytes of them: (inputs, positions, words)."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, (3, 4))
    a, b = rng.normal(size=(2, 3, 4, 5)).astype("float32")
    by_labels = distance_mad(Truth(labels=labels, classes=5), a, b)
    written = distance_mad(Truth(given=np.eye(5)[labels]), a, b)
    np.testing.assert_allclose(by_labels, written, rtol=1e-6)
    many = np.zeros((1, 200, 50_000), np.float16)
    tracemalloc.start()
    distance_mad(Truth(labels=np.zeros((1, 200), int), classes=50_000), many, many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 50_000 * 8  # no array of float64


def test_integers_are_compared_as_integers() -> None:
    """float64 tells none apart above 2**53: hashes differ, and it would not show."""
    a, b = np.array([[2**53, 1]]), np.array([[2**53 + 1, 1]])
    assert float(a[0, 0]) == float(b[0, 0])
    assert distance_relative(a, b)[0] == 2.0**-53
    assert distance_relative(a.astype(np.uint64), a.astype(np.uint64))[0] == 0
    one, other = (Outputs((array,), ("int64",)) for array in (a, b))
    assert compare(("a", "b"), one, other, Truth(), Settings()).inconsistent


def test_infinite_distances_have_a_bin() -> None:
    found = pattern_relative(np.array([np.inf, 0.5, 0.2, 0.0]))
    assert found.counts == (2, 1, 0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize(("value", "inconsistent"), [(2.0, True), (1.3, False)])
def test_an_element_that_is_another_number_counts(value: float, inconsistent: bool) -> None:
    a, b = (Outputs((np.array([[1e6, v]], "float32"),), ("float32",)) for v in (1.0, value))
    (measured,) = compare(("a", "b"), a, b, Truth(), Settings()).measured
    assert measured.maximum < measured.threshold
    assert measured.inconsistent is inconsistent
    assert list(measured.triggering) == [0] * inconsistent


def test_what_is_equal_agrees_whatever_is_tolerated() -> None:
    same = Outputs((np.array([[1.0, np.nan]], "float32"),), ("float32",))
    other = Outputs((np.array([[1.0 + 2**-23, np.nan]], "float32"),), ("float32",))
    none = Settings(tolerance=0.0)
    assert not compare(("a", "b"), same, same, Truth(), none).inconsistent
    assert compare(("a", "b"), same, other, Truth(), none).inconsistent


def test_two_of_five_may_win_if_no_other_group_is_as_large() -> None:
    targets = {name: fake(name) for name in "abcde"}
    assert vote(targets, [("a", "b")], None).outvoted == ("c", "d", "e")


def test_patterns_use_the_papers_bins() -> None:
    found = pattern_class(np.array([16.0, 15, 8, 7, 3, 1, 0, 0]), k=5)
    assert found.bins == ("16", "15-8", "7-4", "3-2", "1", "0")
    assert found.counts == (1, 2, 1, 1, 1, 2)
    assert pattern_mad(np.array([0.0, 0.2, 0.5, 1.0])).counts == (1, 0, 1, 1, 1)
    assert pattern_relative(np.array([0.5, 1e-7])).counts[0] == 1
    assert pattern_class(np.array([4.0, 3.0]), k=3).bins == ("4", "3-2", "1", "0")


def test_nan_has_a_bin_of_its_own() -> None:
    found = pattern_mad(np.array([NAN, 0.1]))
    assert (found.bins[0], found.counts[0], sum(found.counts)) == ("NaN", 1, 2)


@pytest.mark.parametrize(("p", "inconsistent"), [(0, True), (20, True), (30, False)])
def test_p_percent_of_the_inputs_and_at_least_one(p: float, inconsistent: bool) -> None:
    y = np.zeros(10, np.int64)
    a = np.tile([1.0, 0, 0, 0, 0, 0], (10, 1))
    b = a.copy()
    b[:2] = [0, 1, 1, 1, 1, 1]
    found = compare(
        ("a", "b"),
        Outputs((a,), ("float32",)),
        Outputs((b,), ("float32",)),
        Truth(labels=y, classes=6),
        Settings(metrics=("class",), p=p),
    )
    (measured,) = found.measured
    assert list(measured.triggering) == [0, 1]
    assert found.inconsistent is inconsistent


def test_top_k_accuracy() -> None:
    output = np.array([[3.0, 2, 1], [1, 2, 3]])
    assert accuracy(np.array([0, 0]), output, 1) == 0.5
    assert accuracy(np.array([0, 0]), output, 3) == 1.0


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (Outputs((np.ones((2, 3)),), ("float32",)), Outputs((), ()), "1 outputs against 0"),
        (
            Outputs((np.ones((2, 3)),), ("float32",)),
            Outputs((np.ones((2, 4)),), ("float32",)),
            "shape (2, 3) against (2, 4)",
        ),
        (
            Outputs((np.ones((2, 3)),), ("float32",)),
            Outputs((np.ones((2, 3)),), ("float16",)),
            "dtype float32 against float16",
        ),
    ],
)
def test_shape_and_dtype_mismatches_are_inconsistent(a: Outputs, b: Outputs, says: str) -> None:
    found = compare(("a", "b"), a, b, Truth(), Settings())
    assert found.inconsistent
    assert says in (found.mismatch or "")


def test_truth_reads_labels_one_hot_and_values() -> None:
    assert interpret(np.array([1, 2]), [None, 3]).kind == "labels"
    assert interpret(np.array([[1], [2]]), [None, 3]).kind == "labels"
    assert interpret(np.eye(3)[[0, 2]], [None, 3]).labels is not None
    assert interpret(np.array([0.5, 0.1]), [None, 1]).kind == "values"
    assert interpret(np.array([0, 1]), [None, 1]).kind == "values"
    assert interpret(None, [None, 3]).kind == "none"


@pytest.mark.parametrize(
    ("truth", "says"),
    [
        (np.array([0, 3]), "label 3 .instance 1., but the model has 3 classes"),
        (np.array([0, -1]), "label -1"),
        (np.array([0.5, 0.1]), "does not fit the model's output"),
    ],
)
def test_truth_that_does_not_fit_is_refused(truth: Array, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        interpret(truth, [None, 3])


def softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


_NORMAL = np.random.default_rng(0).normal(size=(32, 10))
_ANSWERS = {
    "doubtful classes": softmax(_NORMAL),
    "certain classes": softmax(40 * _NORMAL),
    "yes or no": 1 / (1 + np.exp(-20 * _NORMAL[:, :1])),
    "several yes or no": 1 / (1 + np.exp(-_NORMAL)),
    "values": 100 * _NORMAL,
    "positions": softmax(_NORMAL.reshape(4, 8, 10)),
    "one input": _NORMAL[:1],
    "one answer to all": np.full((5, 3), 7.0),
    "zeros": np.zeros((5, 3)),
}


@pytest.mark.parametrize("kind", list(_ANSWERS))
@pytest.mark.parametrize("targets", [2, 3])
def test_a_presumed_truth_makes_little_of_rounding_and_much_of_a_fault(
    kind: str, targets: int
) -> None:
    """Neither the first target's answer nor the mean of all would: D_MAD of rounding was one."""
    rng = np.random.default_rng(1)
    exact = _ANSWERS[kind]
    answers = [exact * (1 + 1e-7 * rng.uniform(-1, 1, exact.shape)) for _ in range(targets)]
    truth = presumed(answers)
    assert truth.given is not None
    assert truth.given.shape == exact.shape
    rounding = distance_mad(truth, answers[0], answers[1])
    assert rounding.max() < 1e-4
    for size in (1e-4, 1e-2):
        wrong = answers[1] + size * rng.normal(size=exact.shape) * (np.abs(exact).max() or 1)
        fault = distance_mad(truth, answers[0], wrong)
        assert fault.sum() > 10 * rounding.sum()


def test_a_presumed_truth_prefers_no_target_and_is_what_a_label_would_be() -> None:
    right, wrong = np.array([[0.1, 0.7, 0.2]]), np.array([[0.9, 0.05, 0.05]])
    for answers in ([right, right, wrong], [wrong, right, right]):
        assert presumed(answers).given == pytest.approx(np.array([[-0.01, 1.01, -0.01]]))
    assert presumed([np.array([[0.2]]), np.array([[0.4]])]).given == pytest.approx(-0.01)
    nothing = np.array([[np.nan, np.inf], [1.0, 2.0]])
    assert np.isfinite(np.asarray(presumed([nothing, nothing]).given)).all()
    assert presumed([np.zeros((0, 3))] * 2).given is not None


@pytest.mark.parametrize(
    ("groups", "outvoted"),
    [
        ([["tensorflow", "jax"], ["torch"]], ("torch",)),
        ([], ()),  # all say that they cannot do it
        ([["tensorflow"], ["torch"]], ()),  # two cannot decide
        ([["tensorflow", "tensorflow:graph"], ["torch"]], ()),  # one library has one vote
        ([["jax", "tensorflow:xla"], ["torch"]], ()),  # both are XLA
        ([["tensorflow", "jax"], ["torch", "openvino"]], ()),  # a tie
        ([["tensorflow", "jax"], ["torch"], ["openvino"]], ("torch", "openvino")),
    ],
)
def test_votes_are_counted_per_library(groups: list[list[str]], outvoted: tuple[str, ...]) -> None:
    targets = {name: BUILT_IN[name] for group in groups for name in group}
    agreements = [pair for group in groups for pair in pairwise(group)]
    found = vote(targets, agreements, "Dense")
    assert found.outvoted == outvoted
    assert found.decided is bool(outvoted)
    if not outvoted:
        assert "cannot be decided" in found.reason


def test_numpy_has_no_vote_of_its_own_on_convolutions() -> None:
    targets = {name: BUILT_IN[name] for name in ("jax", "numpy", "torch")}
    assert vote(targets, [("jax", "numpy")], "Dense").outvoted == ("torch",)
    assert not vote(targets, [("jax", "numpy")], "Conv2D").decided
