"""Every input that a constraint makes satisfies it, whatever the gradient says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.dialects.keras.targets import BUILT_IN as TARGETS
from outvote.explore.job import CONSTRAINTS, ExploreJob
from outvote.explore.legal import read_features, rules_for
from outvote.worker.explore.constraints import Memory, built_in, window_sums

LOW, HIGH = 0.0, 1.0


def rules(shape: tuple[int, ...], **more: Any) -> Rules:
    return Rules(**{"low": np.full(shape, LOW), "high": np.full(shape, HIGH), "step": 0.04, **more})


def walk(name: str, seed: Array, given_rules: Rules, moves: int, number: int) -> list[Array]:
    """The inputs that a constraint makes of a seed under random gradients, zero ones included."""
    rng = np.random.default_rng(number)
    move, memory, x, made = built_in(name), Memory(), seed, []
    for _ in range(moves):
        gradient = rng.normal(size=seed.shape).astype(np.float32)
        gradient[rng.random(len(seed)) < 0.2] = 0
        x = move(x, gradient, seed, memory, given_rules)
        made.append(x)
    return made


def pictures(number: int, count: int = 3) -> Array:
    rng = np.random.default_rng(number)
    return rng.random((count, 9, 7, 2)).astype(np.float32) * (rng.random((count, 9, 7, 1)) > 0.3)


NUMBERS = st.integers(0, 10_000)
MOVES = st.integers(1, 12)


def test_the_driver_knows_the_constraints_of_the_workers_by_their_files() -> None:
    papers = {"light", "occlusion", "blackout", "add-only", "integer", "none"}
    assert papers <= set(CONSTRAINTS)
    assert all(callable(built_in(name)) for name in CONSTRAINTS)


@given(NUMBERS, MOVES)
def test_light_shifts_all_values_by_one_amount(number: int, moves: int) -> None:
    seed = pictures(number)
    for x in walk("light", seed, rules(seed.shape[1:]), moves, number):
        assert x.dtype == seed.dtype
        for before, after in zip(seed, x, strict=True):
            inside = (after > LOW) & (after < HIGH)
            shifts = (after - before)[inside]
            shift = float(np.median(shifts)) if shifts.size else 0.0
            assert np.allclose(shifts, shift, atol=1e-5)
            assert abs(shift) <= 0.8 + 1e-5
            if shifts.size:
                assert np.allclose(after, np.clip(before + shift, LOW, HIGH), atol=1e-5)


def test_light_never_visits_a_brightness_twice_and_ends() -> None:
    seed = pictures(1, count=1)
    made = walk("light", seed, rules(seed.shape[1:]), 30, 1)
    levels = [round(float((x - seed).mean()), 6) for x in made]
    fresh = levels[: levels.index(levels[-1]) + 1]
    assert len(set(fresh)) == len(fresh) > 8
    assert np.array_equal(made[-1], made[-2])


@given(NUMBERS, MOVES)
def test_occlusion_changes_one_rectangle_only(number: int, moves: int) -> None:
    seed = pictures(number)
    made = walk("occlusion", seed, rules(seed.shape[1:], rectangle=(3, 4)), moves, number)
    changed = np.any([(x != seed).any(axis=-1) for x in made], axis=0)
    for mask in changed:
        rows, columns = np.nonzero(mask)
        if rows.size:
            assert np.ptp(rows) < 3
            assert np.ptp(columns) < 4
    assert all(((x >= LOW) & (x <= HIGH)).all() for x in made)


def test_occlusion_covers_where_the_gradient_is_largest() -> None:
    seed = np.full((1, 9, 7, 2), 0.5, np.float32)
    gradient = np.zeros_like(seed)
    gradient[0, 5:8, 2:6] = 1
    moved = built_in("occlusion")(seed, gradient, seed, {}, rules((9, 7, 2), rectangle=(3, 4)))
    assert (moved[0, 5:8, 2:6] > 0.5).all()
    assert (moved != seed).sum() == 3 * 4 * 2


@given(NUMBERS, MOVES)
def test_blackout_only_blackens_small_rectangles(number: int, moves: int) -> None:
    seed = pictures(number)
    last = seed
    for x in walk("blackout", seed, rules(seed.shape[1:], rectangle=(2, 2)), moves, number):
        changed = x != last
        assert (x[changed] == LOW).all()
        for mask in changed.any(axis=-1):
            rows, columns = np.nonzero(mask)
            if rows.size:
                assert max(np.ptp(rows), np.ptp(columns)) < 2
        last = x


@given(NUMBERS, MOVES, st.integers(1, 4))
def test_add_only_adds_allowed_features_and_takes_none_away(
    number: int, moves: int, many: int
) -> None:
    rng = np.random.default_rng(number)
    seed = (rng.random((4, 12)) < 0.4).astype(np.float32)
    allowed = rng.random(12) < 0.5
    last = seed
    for x in walk(
        "add-only", seed, rules((12,), increase=allowed, step=float(many)), moves, number
    ):
        assert set(np.unique(x)) <= {0.0, 1.0}
        assert (x >= last).all()
        assert (x == seed)[:, ~allowed].all()
        assert ((x != last).sum(axis=1) <= many).all()
        last = x


@given(NUMBERS, MOVES)
def test_integer_features_move_in_whole_steps_that_are_permitted(number: int, moves: int) -> None:
    rng = np.random.default_rng(number)
    unit = rng.choice([0.25, 1.0, 1 / 3], 6)
    seed = (rng.integers(-3, 4, (4, 6)) * unit).astype(np.float32)
    grow, shrink = rng.random(6) < 0.6, rng.random(6) < 0.6
    limits = Rules(
        np.full(6, -4.0), np.full(6, 4.0), 0.7, unit=unit, increase=grow, decrease=shrink
    )
    for x in walk("integer", seed, limits, moves, number):
        steps = (x - seed) / unit
        assert np.allclose(steps, np.rint(steps), atol=1e-3)
        assert not (np.rint(steps) > 0)[:, ~grow].any()
        assert not (np.rint(steps) < 0)[:, ~shrink].any()
        assert (x >= -4 - 1e-4).all()
        assert (x <= 4 + 1e-4).all()


def test_small_wishes_add_up_to_a_whole_step() -> None:
    seed = np.zeros((1, 2), np.float32)
    gradient = np.array([[1.0, 0.0]], np.float32)
    memory: Memory = {}
    limits = Rules(np.full(2, -9.0), np.full(2, 9.0), 0.25)
    x, seen = seed, []
    for _ in range(4):
        x = built_in("integer")(x, gradient, seed, memory, limits)
        seen.append(float(x[0, 0]))
    assert seen[0] == 0
    assert seen[-1] == 1


@given(NUMBERS, MOVES)
def test_without_a_constraint_the_range_still_holds(number: int, moves: int) -> None:
    seed = pictures(number)
    for x in walk("none", seed, rules(seed.shape[1:], step=0.5), moves, number):
        assert ((x >= LOW) & (x <= HIGH)).all()


@given(NUMBERS, MOVES)
def test_without_a_constraint_features_keep_to_their_directions(number: int, moves: int) -> None:
    rng = np.random.default_rng(number)
    seed = rng.random((4, 6)).astype(np.float32)
    grow, shrink = rng.random(6) < 0.5, rng.random(6) < 0.5
    for x in walk("none", seed, rules((6,), increase=grow, decrease=shrink), moves, number):
        assert not (x > seed)[:, ~grow].any()
        assert not (x < seed)[:, ~shrink].any()


FLAGS = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("ab")), min_size=3)


@given(FLAGS, st.sampled_from(["a", "b", ""]), NUMBERS, MOVES)
def test_what_a_features_file_says_is_what_integer_features_do(
    flags: list[tuple[bool, bool, str]], group: str, number: int, moves: int
) -> None:
    """From the text of the file to the inputs: every feature keeps to its row and its group."""
    lines = [f"f{i},{g},{int(up)},{int(down)}" for i, (up, down, g) in enumerate(flags)]
    seed = np.random.default_rng(number).integers(-3, 4, (4, len(flags))).astype(np.float32)
    groups = (group,) if group in {g for _, _, g in flags} else ()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.csv"
        path.write_text("\n".join(["name,group,increment,decrement", *lines]))
        job = ExploreJob(
            (), {}, TARGETS["torch"], "integer", step=0.9, features=path, groups=groups
        )
        (told,) = rules_for(job, [seed], read_features(path))
    made = walk("integer", seed, told, moves, number)
    for i, (up, down, named) in enumerate(flags):
        inside = not groups or named in groups
        for x in made:
            assert (up and inside) or not (x[:, i] > seed[:, i]).any()
            assert (down and inside) or not (x[:, i] < seed[:, i]).any()
            assert np.array_equal(x[:, i], np.rint(x[:, i]))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 3), (5, 4)])
def test_window_sums_are_sums_over_windows(height: int, width: int) -> None:
    values = np.random.default_rng(0).normal(size=(2, 5, 4))
    sums = window_sums(values, height, width)
    assert sums.shape == (2, 5 - height + 1, 4 - width + 1)
    assert np.isclose(sums[1, 0, 0], values[1, :height, :width].sum())
    assert np.isclose(sums[0, -1, -1], values[0, 5 - height :, 4 - width :].sum())
