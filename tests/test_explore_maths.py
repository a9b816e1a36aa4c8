"""DeepXplore's figures on plain arrays: votes, likeness, answers, ranges, neurons."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import fake
from outvote.commands.pollution.job import Evidence
from outvote.commands.pollution.run import (
    _between_two_groups,
    find_suspects,
    moved_confidence,
)
from outvote.core.answers import SURE_LEAD, Oracle
from outvote.core.arrays import Array
from outvote.core.case import Data
from outvote.core.errors import UsageError
from outvote.dialects.keras.targets import BUILT_IN
from outvote.explore.baselines import random_inputs
from outvote.explore.expedition import Expedition
from outvote.explore.job import Coverage, Differences, Explored, ExploreJob
from outvote.explore.legal import legal_range, read_features, rules_for
from outvote.explore.roles import confirming_target, searching_target
from outvote.explore.similarity import ssim
from outvote.explore.votes import deviating, majority
from outvote.run.local import LocalPool
from outvote.worker.explore.neurons import Activations, sections

LABELS = st.integers(1, 5).flatmap(
    lambda models: st.lists(
        st.lists(st.integers(0, 3), min_size=models, max_size=models), min_size=1, max_size=6
    )
)


def job_of(**more: Any) -> ExploreJob:
    return ExploreJob((Path("a"), Path("b")), {}, fake("a"), **more)


# Votes


@given(LABELS)
def test_a_majority_is_more_than_half(columns: list[list[int]]) -> None:
    found = majority(np.array(columns).T)
    for column, label in zip(columns, found, strict=True):
        most, votes = Counter(column).most_common(1)[0]
        assert label == (most if 2 * votes > len(column) else -1)


def differences(answers: Sequence[Any], before: Sequence[Any]) -> Differences:
    rows = len(answers[0])
    zeros = np.zeros(rows, int)
    return Differences(
        zeros, [], [np.array(a, float) for a in answers], [np.array(b, float) for b in before],
        zeros, zeros,
    )  # fmt: skip


ONE, TWO = [1.0, 0.0], [0.0, 1.0]


def test_who_is_outvoted_has_left_and_without_a_majority_whoever_left_the_seed() -> None:
    explored = Explored(job_of())
    three = differences([[ONE, ONE], [TWO, ONE], [TWO, ONE]], [[ONE, ONE]] * 3)
    # Two of three say 2 now: it is the first that left, though it says what all said before.
    assert deviating(three, explored).tolist() == [[True, False], [False, False], [False, False]]
    pair = differences([[ONE], [TWO]], [[ONE], [ONE]])
    assert deviating(pair, explored).tolist() == [[False], [True]]


def test_of_values_without_bins_the_one_that_moved_farthest_has_left() -> None:
    explored = Explored(job_of(tolerance=0.1), kind="values")
    found = differences([[[0.5]], [[0.9]], [[0.4]]], [[[0.4]], [[0.4]], [[0.4]]])
    assert deviating(found, explored).tolist() == [[False], [True], [False]]
    binned = Explored(job_of(edges=(0.45,)), kind="values")
    assert deviating(found, binned).tolist() == [[False], [False], [True]]


def test_finds_are_kept_row_by_row_and_put_together() -> None:
    first = differences([[ONE, TWO]], [[ONE, ONE]])
    explored = Explored(job_of())
    explored.add(first)
    explored.add(first.rows(np.array([1])))
    assert explored.found is not None
    assert explored.found.count == 3
    assert explored.found.answers[0].tolist() == [ONE, TWO, TWO]


def test_coverage_is_the_share_of_neurons_above_the_threshold() -> None:
    explored = Explored(job_of(threshold=0.25))
    assert explored.coverage == 0.0
    explored.best = [np.array([0.2, 0.3]), np.array([0.25, 0.9, 0.1, 0.5])]
    assert explored.coverage == 3 / 6
    assert Coverage(explored.best, [], 4).tests == 4


# Answers


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=2, max_size=2),
    st.sampled_from([(), (0.0,), (-0.5, 0.5)]),
    st.sampled_from([None, 0.25]),
)
def test_values_differ_in_bins_and_by_more_than_is_tolerated(
    answers: list[list[float]], edges: tuple[float, ...], tolerance: float | None
) -> None:
    columns = [np.array(answer)[:, None] for answer in answers]
    found = Oracle("values", tolerance, edges).differ(columns)
    for row, (a, b) in enumerate(zip(*answers, strict=True)):
        expected = True
        if edges:
            expected &= sum(a >= e for e in edges) != sum(b >= e for e in edges)
        if tolerance is not None:
            expected &= abs(a - b) > tolerance
        assert found[row] == expected


@pytest.mark.parametrize("kind", ["classes", "values"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_agrees_with_nothing(kind: str, bad: float) -> None:
    oracle = Oracle(kind, tolerance=9.0 if kind == "values" else None)
    wrong, right = np.array([[bad, 0.2]]), np.array([[0.8, 0.2]])
    assert oracle.labels(wrong).tolist() == [-1]
    assert oracle.differ([wrong, right]).tolist() == [True]
    assert oracle.differ([wrong, wrong]).tolist() == [True]
    assert oracle.clearly_differ([wrong, right]).tolist() == [True]


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_clearly_differs_differs(p: float, q: float) -> None:
    answers = [np.array([[p, 1 - p]]), np.array([[q, 1 - q]])]
    oracle = Oracle("classes")
    clearly = bool(oracle.clearly_differ(answers)[0])
    assert not clearly or bool(oracle.differ(answers)[0])
    both_sure = abs(2 * p - 1) > SURE_LEAD and abs(2 * q - 1) > SURE_LEAD
    assert clearly == (both_sure and (p > 0.5) != (q > 0.5))


def test_the_weights_of_an_answer_are_the_class_of_the_seed_or_every_value() -> None:
    chosen = Oracle("classes").coefficients(np.array([2, 0]), 3)
    assert chosen.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert Oracle("values").coefficients(np.array([0, 0]), 2).tolist() == [[1, 1], [1, 1]]


# Likeness


def naive_ssim(a: Array, b: Array, span: float) -> float:
    """Wang et al. 2004, equation 13, window by window of 8, every 4 places and at the end."""
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    height, width = a.shape[:2]
    side = min(8, height, width)

    def starts(size: int) -> list[int]:
        return [*range(0, size - side, 4), size - side]

    found = []
    for top in starts(height):
        for left in starts(width):
            x = a[top : top + side, left : left + side].ravel()
            y = b[top : top + side, left : left + side].ravel()
            covariance = ((x - x.mean()) * (y - y.mean())).mean()
            light = (2 * x.mean() * y.mean() + c1) / (x.mean() ** 2 + y.mean() ** 2 + c1)
            found.append(light * (2 * covariance + c2) / (x.var() + y.var() + c2))
    return float(np.mean(found))


@given(st.integers(0, 2**32), st.sampled_from([(5, 6, 1), (8, 8, 3), (11, 9, 2), (13, 8, 1)]))
def test_all_likenesses_at_once_are_those_one_by_one(seed: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random((3, *shape)), rng.random((2, *shape))
    found = ssim(a, b, 1.0)
    for i in range(3):
        for j in range(2):
            assert found[i, j] == pytest.approx(naive_ssim(a[i], b[j], 1.0), abs=1e-12)
    assert np.diag(ssim(a, a, 1.0)) == pytest.approx(np.ones(3))


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12))
def test_the_border_parts_scores_as_no_other_border_does(scores: list[float]) -> None:
    """Otsu 1979: the variance between the two groups is the largest there is."""

    def between(border: float) -> float:
        low = [s for s in scores if s <= border]
        high = [s for s in scores if s > border]
        if not low or not high:
            return 0.0
        return float(len(low) * len(high) * (np.mean(high) - np.mean(low)) ** 2)

    found = between(_between_two_groups(np.array(scores)))
    assert found == pytest.approx(max(map(between, scores)), abs=1e-9)


def test_one_score_alone_is_a_suspect() -> None:
    assert _between_two_groups(np.array([0.3])) < 0.3


def test_confidence_moves_from_the_class_that_lost_most() -> None:
    clean = np.array([[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.1, 0.9, 0.0]])
    polluted = np.array([[0.5, 0.1, 0.4], [0.5, 0.1, 0.4], [0.1, 0.9, 0.0]])
    true, false, moved = moved_confidence(clean, polluted)
    assert (true, false) == (0, 2)
    assert moved == pytest.approx(0.35)
    assert moved_confidence(clean, clean)[2] == 0.0


def test_suspects_have_the_false_label_and_look_like_the_evidence_rather_than_genuine() -> None:
    rng = np.random.default_rng(0)
    nines, ones = rng.random((2, 8, 8, 1)), rng.random((2, 8, 8, 1))
    noisy = np.clip(nines[0] + 0.02 * rng.normal(size=(4, 8, 8, 1)), 0, 1)
    genuine = np.clip(ones[0] + 0.02 * rng.normal(size=(6, 8, 8, 1)), 0, 1)
    x = np.concatenate([noisy, genuine, nines])
    labels = np.array([1] * 10 + [9] * 2)
    evidence = Evidence(9, 1, nines[:1], ones[:1], 0.2)
    suspects, scores = find_suspects(x, labels, evidence)
    assert sorted(suspects) == [0, 1, 2, 3]
    assert (np.diff(scores) <= 0).all()
    none, _ = find_suspects(x, np.full(12, 9), evidence)
    assert not len(none)


# Ranges and features


def write_features(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_features_say_what_may_move_where_and_by_how_much(tmp_path: Path) -> None:
    path = write_features(
        tmp_path / "features.csv",
        [
            {"name": "size", "group": "file", "unit": "4", "increment": "yes", "decrement": "",
             "low": "0", "high": "100"},
            {"name": "calls", "group": "code", "unit": "", "increment": "1", "decrement": "1",
             "low": "", "high": ""},
        ],
    )  # fmt: skip
    features = read_features(path)
    seeds = np.array([[10.0, 3.0], [60.0, 500.0]])
    (rules,) = rules_for(job_of(constraint="integer", features=path), [seeds], features)
    assert rules.low.tolist() == [0, 3]  # the file's, where it says one; else the data's
    assert rules.high.tolist() == [100, 500]
    assert rules.increase is not None
    assert rules.decrease is not None
    assert rules.increase.tolist() == [True, True]
    assert rules.decrease.tolist() == [False, True]
    assert rules.unit is not None
    assert rules.unit.tolist() == [4, 1]
    only_code = job_of(constraint="integer", features=path, groups=("code",))
    (limited,) = rules_for(only_code, [seeds], features)
    assert limited.increase is not None
    assert limited.decrease is not None
    assert limited.increase.tolist() == [False, True]
    assert limited.decrease.tolist() == [False, True]


def test_a_step_counts_in_255ths_of_the_range_for_pictures_and_in_units_for_tables() -> None:
    pictures, table = np.zeros((2, 6, 8, 1)), np.array([[0.0, 300.0]])
    pictures[0, 0, 0] = 1.0
    (light,) = rules_for(job_of(constraint="light", step=51.0), [pictures], None)
    assert light.step == pytest.approx(51 / 255)
    (integer,) = rules_for(job_of(constraint="integer", step=0.5), [table], None)
    assert integer.step == 0.5


@pytest.mark.parametrize(
    ("constraint", "wish", "rectangle"),
    [("light", None, None), ("occlusion", None, (2, 2)), ("blackout", (3, 5), (3, 5))],
)
def test_rectangles_are_a_share_of_the_shorter_side_or_as_wished(
    constraint: str, wish: tuple[int, int] | None, rectangle: tuple[int, int] | None
) -> None:
    job = job_of(constraint=constraint, rectangle=wish)
    (rules,) = rules_for(job, [np.zeros((1, 6, 8, 1))], None)
    assert rules.rectangle == rectangle


@given(st.lists(st.floats(-300, 300, width=32), min_size=4, max_size=4))
def test_every_seed_lies_in_the_range_that_is_found_for_it(values: list[float]) -> None:
    for array in (np.array(values).reshape(2, 2), np.array(values).reshape(1, 2, 2)):
        low, high = legal_range(array, None)
        assert low.shape == high.shape == array.shape[1:]
        assert (array >= low).all()
        assert (array <= high).all()


def test_a_range_that_does_not_hold_the_seeds_is_refused() -> None:
    array = np.array([[0.0, 2.0]])
    low, high = legal_range(array, (-1.0, 3.0))
    assert (low.tolist(), high.tolist()) == ([-1, -1], [3, 3])
    with pytest.raises(UsageError, match="outside of --range 0,1"):
        legal_range(array, (0.0, 1.0))


def test_baselines_take_every_seed_once_before_any_twice() -> None:
    data = Data((np.arange(5.0)[:, None],), None, "here", (0,))
    job = job_of()
    trip = Expedition(LocalPool([job.target]), job, replace(Explored(job), data=data))
    (few,) = random_inputs(trip, 3)
    assert len(set(few.ravel())) == 3
    (many,) = random_inputs(trip, 12)
    counts = Counter(many.ravel())
    assert set(counts) == set(range(5))
    assert set(counts.values()) <= {2, 3}
    assert random_inputs(trip, 12)[0].tolist() == many.tolist()


# Targets that search and confirm


def with_gradients(name: str, costs: frozenset[str] = frozenset(), **more: Any) -> Any:
    base = replace(fake(name), backend=name, capabilities=frozenset({"gradients"}), costs=costs)
    return replace(base, **more)


def test_the_quickest_target_with_gradients_searches_and_another_backend_confirms() -> None:
    known = {
        "slow": with_gradients("slow", frozenset({"differentiates_slowly"})),
        "quick": with_gradients("quick"),
        "patched": with_gradients("patched", setup=Path("fault.py")),
        "blind": fake("blind"),
    }
    assert searching_target(None, known).name == "quick"
    assert searching_target("slow", known).name == "slow"
    assert searching_target(None, known, ["blind", "slow"]).name == "slow"
    with pytest.raises(UsageError, match="'blind' has no gradients to follow; choose one of quick"):
        searching_target("blind", known)
    with pytest.raises(UsageError, match="--target slow is not among --targets quick,blind"):
        searching_target("slow", known, ["quick", "blind"])
    with pytest.raises(UsageError, match="none of blind has gradients"):
        searching_target(None, known, ["blind"])
    second = confirming_target(None, known["quick"], known)
    assert second is not None
    assert second.name == "slow"
    assert confirming_target("none", known["quick"], known) is None
    assert confirming_target(None, known["quick"], {"quick": known["quick"]}) is None
    with pytest.raises(UsageError, match="'blind' cannot confirm finds"):
        confirming_target("blind", known["quick"], known)


def test_the_gradients_of_keras_are_where_the_dialect_says() -> None:
    able = {name for name, target in BUILT_IN.items() if target.can("gradients")}
    assert {"torch", "jax", "tensorflow"} <= able
    assert not able & {"numpy", "openvino", "fake"}


# Neurons


@given(st.integers(0, 2**32))
def test_neurons_are_scaled_within_their_layer_and_the_largest_are_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    widths = [2, 3]
    neurons = rng.normal(size=(4, 5))
    layers = [neurons[:, :2], neurons[:, 2:]]
    lows = np.stack([part.min(axis=1) for part in layers], axis=1)
    highs = np.stack([part.max(axis=1) for part in layers], axis=1)
    found = Activations(neurons, lows, highs, widths)
    scaled = found.scaled()
    for row, part in ((r, p) for r in range(4) for p in range(2)):
        own = scaled[row, :2] if part == 0 else scaled[row, 2:]
        assert own.min() == 0
        assert own.max() == 1
    for k in (1, 2):
        expected = [
            any(neurons[row, i] in sorted(layers[0][row])[-k:] for row in range(4)) for i in (0, 1)
        ]
        assert found.top(k)[:2].tolist() == expected


def test_a_layer_that_is_constant_activates_nothing() -> None:
    ones = np.ones((2, 1))
    assert Activations(np.ones((2, 3)), ones, ones, [3]).scaled().tolist() == [[0] * 3] * 2


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=8), st.integers(1, 5))
def test_sections_are_hit_by_what_lies_inside(values: list[float], count: int) -> None:
    column = np.array(values)[:, None]
    found = sections(column, np.zeros(1), np.ones(1), count)[0]
    expected = [False] * count
    for value in values:
        if 0 <= value <= 1:
            expected[min(int(value * count), count - 1)] = True
    assert found.tolist() == expected
    assert not sections(column, np.ones(1), np.ones(1), count).any()  # a neuron that never moved
