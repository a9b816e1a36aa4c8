"""Tolerances: each number is what its comment says; and what rounding explains, row by row."""

from __future__ import annotations

import re

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.model import Layer, Weight
from outvote.core.outputs import Outputs
from outvote.judge import tolerance
from outvote.judge.compare import distance
from outvote.judge.rounding import Gap, Rounding, layer_rounding
from outvote.judge.tolerance import (
    ELEMENT,
    FARTHER,
    LARGEST,
    LAYER_PLACES,
    LOST_DIGITS,
    MORE_PROBES,
    NOISE_FACTOR,
    PLACE,
    PROBES,
    base_tolerance,
    beyond_noise,
    layer_tolerance,
    model_tolerance,
    screen_tolerance,
    terms_of,
)
from test_house import SOURCE

CASES = 20_000


# The figures in the comments of tolerance.py.


@pytest.mark.parametrize(("numbers", "most"), [(1, 3e-3), (3, 5e-5), (100, 5e-5)])
def test_honest_differences_hardly_ever_exceed_the_factor(numbers: int, most: float) -> None:
    rng = np.random.default_rng(0)
    noise = np.abs(rng.normal(size=(CASES, len(PROBES), numbers))).max(axis=(1, 2))
    two = rng.normal(size=(2, CASES, numbers))
    apart = np.abs(two[0] - two[1]).max(axis=1)
    assert (apart > NOISE_FACTOR * noise).mean() <= most


def test_more_probes_leave_nothing_to_chance() -> None:
    rng = np.random.default_rng(1)
    probes = np.abs(rng.normal(size=(CASES, len(PROBES) + len(MORE_PROBES)))).max(axis=1)
    apart = np.abs(rng.normal(size=CASES) - rng.normal(size=CASES))
    assert not (apart > NOISE_FACTOR * probes).any()
    assert not set(PROBES) & set(MORE_PROBES)


@pytest.mark.parametrize(("numbers", "share"), [(10, 0.08), (30, 0.01), (100, 0.0006)])
def test_how_often_one_of_two_honest_errors_is_farther(numbers: int, share: float) -> None:
    rng = np.random.default_rng(2)
    a, b = np.abs(rng.normal(size=(2, CASES, numbers))).max(axis=2)
    found = (np.maximum(a, b) > FARTHER * np.minimum(a, b)).mean()
    assert share / 2 < found < share * 2


def test_lost_digits_lie_between_rounding_and_fewer_bits() -> None:
    rounding, tf32 = layer_tolerance("float32"), 2.0**-11
    border = LOST_DIGITS * rounding
    assert border / rounding == pytest.approx(tf32 / border)


def test_types_are_what_numpy_says() -> None:
    for name in ("float16", "float32", "float64"):
        assert PLACE[name] == np.finfo(name).eps
        assert LARGEST[name] == np.finfo(name).max
    widest = np.array([0x7F7F], np.uint32) << 16  # the largest bfloat16
    assert LARGEST["bfloat16"] == widest.view(np.float32)[0]
    assert model_tolerance("float32") == pytest.approx(1e-5, rel=2e-3)


def test_noise_of_the_identity_explains_more_than_needs_no_explanation() -> None:
    assert LAYER_PLACES < NOISE_FACTOR


def test_a_layer_that_adds_more_may_differ_by_more() -> None:
    dense = Layer("d", "Dense", {}, weights=(Weight("k", "", (4608, 10)), Weight("b", "", (10,))))
    pool = Layer("p", "AveragePooling2D", {})
    read = np.zeros((2, 8, 8))
    assert terms_of([pool], [read]) == 64
    assert terms_of([dense], [np.zeros((1, 4608))]) == 4608
    assert terms_of([dense], [read]) == 64  # an embedding has many rows, and adds none of them
    assert terms_of([pool, dense], [read]) == 4608
    assert layer_tolerance("float32", 64) == layer_tolerance("float32") == LAYER_PLACES * 2**-23
    assert layer_tolerance("float32", 4608) == pytest.approx(67.9 * 2**-23, rel=1e-3)


def test_noise_is_measured_for_narrow_types_and_several_layers_whatever_the_distance() -> None:
    assert beyond_noise("float32", 1) == pytest.approx(1e-2, rel=0.03)
    assert beyond_noise("float16", 1) > 2  # no relative distance is larger
    assert beyond_noise("bfloat16", 1) > 2
    assert beyond_noise("float32", 2) == np.inf


def test_integers_that_are_off_by_one_are_looked_into() -> None:
    a, b = (Outputs((np.array([[value]]),), ("int64",)) for value in (1_000_000, 1_000_001))
    assert distance(a, b) < 1e-5
    assert not distance(a, b) < screen_tolerance(a)
    assert distance(a, a) < screen_tolerance(a)


def test_no_threshold_stands_anywhere_else() -> None:
    """Modules that judge hold no number but 0, 1, 2 (axes, pairs) and what formats text."""
    judging = [
        *(SOURCE / "judge").glob("*.py"),
        *(SOURCE / "bench").glob("*.py"),
        *(SOURCE / "triage" / name for name in ("verdict.py", "inquiry.py", "differences.py")),
        *(SOURCE / "localize" / name for name in ("isolated.py", "whole_graph.py", "layers.py")),
        SOURCE / "findings" / "blame.py",
        SOURCE / "commands" / "check" / "run.py",
    ]
    scale = re.compile(r"(?<![\w.\[])(?:\d+\.\d+|\d+e-?\d+|2\.0\*\*)|\b2 \*(?!\*)")
    left = {"patterns.py", "distances.py", "truth.py", "tolerance.py", "precision.py"}  # formulas
    for path in judging:
        if path.name in left:
            continue
        for line in path.read_text().splitlines():
            code = line.partition("#")[0]
            found = [m for m in scale.findall(code) if m not in ("0.0", "1.0")]
            assert not found, f"{path.name}: {line}"


def test_tolerance_file_comments_every_constant() -> None:
    text = (SOURCE / "judge" / "tolerance.py").read_text().splitlines()
    names = [name for name in vars(tolerance) if name.isupper()]
    assert len(names) > 15
    for name in names:
        (line,) = [n for n, row in enumerate(text) if row.startswith(f"{name} =")]
        before = text[line - 1]
        assert before.startswith("#") or "=" in before or name == "PLACE", name


# What rounding explains.


def outputs(*rows: list[float], dtype: str = "float32") -> Outputs:
    return Outputs((np.array(rows, dtype),), (dtype,))


def limits(found: Outputs, noise: Array | None = None) -> Rounding:
    rounding = layer_rounding([found], 1, NOISE_FACTOR)
    return rounding if noise is None else rounding.with_noise([noise])


def test_a_row_is_held_to_its_own_noise() -> None:
    a, b = outputs([1.0, 2.0], [1.0, 2.0]), outputs([1.0, 3.0], [1.0, 2.1])
    ill = np.array([[0.1, 0.0], [0.1, 0.0]])  # the first row alone is ill-conditioned
    assert not limits(a, ill).explains(a, b)
    assert limits(a, ill).explains(a, outputs([1.0, 3.0], [1.0, 2.0]))
    gap = limits(a, ill).gap(a, b)
    assert gap.distance == pytest.approx(0.1 / 2.1)
    assert gap.limit == LAYER_PLACES * PLACE["float32"]


@pytest.mark.parametrize(("value", "seen"), [(2.0, True), (1.3, False)])
def test_a_large_neighbour_hides_no_element(value: float, seen: bool) -> None:
    """[1e6, 1] against [1e6, 2] is 1e-6 of the largest element, and another number."""
    a, b = outputs([1e6, 1.0]), outputs([1e6, value])
    assert distance(a, b) < 1e-5
    gap = Rounding(((1e-5, ELEMENT),)).gap(a, b)
    assert gap.explained is not seen
    assert gap.distance == distance(a, b)  # told as a relative distance


def test_an_element_is_held_to_its_noise_too() -> None:
    a, b = outputs([1e6, 1.0]), outputs([1e6, 2.0])
    quiet, loud = (np.array([[1e-7], [noise]]) for noise in (0.01, 0.1))
    base = Rounding(((1e-5, ELEMENT),))
    assert not base.with_noise([quiet]).explains(a, b)
    assert base.with_noise([loud]).explains(a, b)


def test_noise_does_not_explain_whole_numbers_of_a_layer() -> None:
    """A movement of the input that takes a step says nothing of a layer given equal tensors."""
    a, b = outputs([3], dtype="int32"), outputs([4], dtype="int32")
    assert not limits(a, np.array([[1.0], [1.0]])).explains(a, b)


def test_gaps_of_nan_of_other_forms_and_of_nothing() -> None:
    a = outputs([1.0])
    assert not limits(a).explains(a, outputs([np.nan]))
    assert limits(a).gap(a, outputs([np.nan])).times == np.inf
    assert limits(a).gap(a, outputs([1.0, 2.0])) == Gap(np.inf, 0.0)
    assert Rounding(((0.0, 0.0),)).explains(a, a)  # --tolerance 0
    assert limits(outputs()).explains(outputs(), outputs())
    assert base_tolerance("int32", 8) == np.finfo(np.float64).tiny
