"""The contract of every metric, whatever it measures; `test_judge.py` has the papers' examples.

A file in `judge/metrics` is held to it as soon as it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.outputs import Outputs
from outvote.core.truth import Truth
from outvote.judge.compare import METRICS, Measured, Settings, compare
from outvote.judge.metrics import Reading, Rivals, all_metrics

GUIDE = Path(__file__).parent.parent / "docs" / "check.md"
ROWS, CLASSES = 4, 6
OURS = ["class", "mad", "relative"]
every = pytest.mark.parametrize("name", sorted(all_metrics()))
NUMBERS = st.integers(0, 2**32 - 1)


def outputs_of(number: int) -> Array:
    """Answers of a classifier: rows that add up to one."""
    powers = np.exp(2 * np.random.default_rng(number).normal(size=(ROWS, CLASSES)))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


def truths(name: str) -> Iterator[Truth]:
    """Every kind of truth that the metric may be held against."""
    labels = np.arange(ROWS) % CLASSES
    known = {
        "labels": Truth(labels=labels, classes=CLASSES),
        "values": Truth(given=np.eye(CLASSES)[labels]),
        "none": Truth(),
    }
    for kind in sorted(all_metrics()[name].NEEDS):
        yield known[kind]


def read(name: str, x: Array, y: Array, truth: Truth) -> Reading:
    return all_metrics()[name].measure(Rivals(x, y, "float32", truth), Settings())


def counts(reading: Reading) -> Array:
    return Measured("", 0, reading.threshold, reading.distances, reading.pattern, 1.0,
                    reading.elements).reached  # fmt: skip


def test_the_metrics_of_cradle_and_ours_are_there_by_their_files() -> None:
    assert [name for name in METRICS if name in OURS] == OURS


@every
def test_it_says_what_it_needs_and_the_guide_has_a_row_for_it(name: str) -> None:
    metric = all_metrics()[name]
    assert metric.NEEDS
    assert {"labels", "values", "none"} >= metric.NEEDS
    row = rf"^\| `{re.escape(name)}` \|"
    assert re.search(row, GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


@every
@given(number=NUMBERS)
def test_one_distance_per_instance_the_same_both_ways(name: str, number: int) -> None:
    x, y = outputs_of(number), outputs_of(number + 1)
    for truth in truths(name):
        reading, turned = read(name, x, y, truth), read(name, y, x, truth)
        assert reading.distances.shape == (ROWS,)
        assert (reading.distances >= 0).all()
        np.testing.assert_allclose(reading.distances, turned.distances, rtol=1e-12)
        assert sum(reading.pattern.counts) == ROWS
        assert len(reading.pattern.counts) == len(reading.pattern.bins)


@every
@given(number=NUMBERS)
def test_what_is_equal_does_not_count_and_has_distance_zero(name: str, number: int) -> None:
    x = outputs_of(number)
    for value in (None, np.nan, np.inf, -np.inf):
        if value is not None:
            x = x.copy()
            x[number % ROWS, number % CLASSES] = value
        for truth in truths(name):
            reading = read(name, x, x.copy(), truth)
            assert reading.distances.tolist() == [0.0] * ROWS
            assert not counts(reading).any()


@every
@given(number=NUMBERS, label=st.integers(0, CLASSES - 1))
def test_what_has_no_number_on_one_side_counts(name: str, number: int, label: int) -> None:
    x, y = outputs_of(number), outputs_of(number)
    y[2, label] = np.nan
    for truth in truths(name):
        reading = read(name, x, y, truth)
        assert counts(reading).tolist() == [False, False, True, False]


@every
@given(number=NUMBERS)
def test_an_instance_is_judged_by_itself(name: str, number: int) -> None:
    x, y = outputs_of(number), outputs_of(number + 1)
    order = np.random.default_rng(number).permutation(ROWS)
    for truth in truths(name):
        moved = Truth(
            None if truth.labels is None else truth.labels[order],
            None if truth.given is None else truth.given[order],
            truth.classes,
        )
        reading, turned = read(name, x, y, truth), read(name, x[order], y[order], moved)
        np.testing.assert_array_equal(reading.distances[order], turned.distances)
        assert reading.pattern == turned.pattern


@every
def test_no_instance_has_no_distance(name: str) -> None:
    nothing = np.zeros((0, CLASSES), np.float32)
    for truth in truths(name):
        empty = Truth(
            None if truth.labels is None else truth.labels[:0],
            None if truth.given is None else truth.given[:0],
            truth.classes,
        )
        reading = read(name, nothing, nothing, empty)
        assert reading.distances.shape == (0,)
        assert sum(reading.pattern.counts) == 0


@every
def test_it_is_not_asked_for_a_truth_that_it_does_not_need(name: str) -> None:
    x, y = outputs_of(0), outputs_of(1)
    for kind, truth in (("none", Truth()), ("values", Truth(given=np.zeros((ROWS, CLASSES))))):
        a, b = (Outputs((array,), ("float32",)) for array in (x, y))
        found = compare(("a", "b"), a, b, truth, Settings(metrics=(name,)))
        asked = [measured.name for measured in found.measured]
        assert asked == ([name] if kind in all_metrics()[name].NEEDS else [])
