"""Every row of the verdict on training, just inside its border and just outside.

A desk stands for the pool: it computes a function of NumPy, and every target's gradient of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised, do, observe
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.exercises import Pull, Update
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run
from outvote.core.train_protocol import (
    ApplyGradients,
    Beside,
    GradientsApplied,
    Leaf,
    Move,
    PullBack,
    PulledBack,
)
from outvote.dialects.keras.targets import BUILT_IN
from outvote.judge.compare import Settings
from outvote.judge.tolerance import LAYER_PLACES, LOST_DIGITS, PLACE
from outvote.run.pool import Pool
from outvote.triage.stage_inquiry import StageInquiry, WholeModel
from outvote.triage.stage_verdict import STAGE_ROWS, StageVerdict, decide_stage

NAMES = ("tensorflow", "jax", "torch")
TARGETS = {name: BUILT_IN[name] for name in NAMES}
LIMIT = LAYER_PLACES * PLACE["float32"]  # what rounding explains of a layer
Given = Callable[[Array, Array], Array | None]  # x and the cotangent to a gradient
MODEL = Model(
    "one",
    (Input("x", (None, 3), "float32"),),
    (Layer("f", "Activation", {"name": "f"}, args=[{REF: ["x", 0]}]),),
    (Ref("f"),),
    "keras",
)
SQUASHED = replace(
    MODEL, layers=(replace(MODEL.layers[0], config={"name": "f", "activation": "softmax"}),)
)
POINT = np.array([[0.5, -0.25, 1.0], [2.0, 0.75, -1.5]], np.float32)
ONES = np.ones((2, 3), np.float32)


@dataclass
class Desk:
    """Answers for every target; `narrow` changes what one gives in float32 alone.

    `functions`: of those that compute another one beside the point. `squashed`: what the loss of
    TensorFlow adds to the gradient where it reads the logits behind an output. `clipped`: what a
    target adds to the number, as a multiple of what losses keep away from 0 by.
    """

    blobs: BlobStore
    function: Callable[[Array], Array]
    given: Mapping[str, Given]
    narrow: Mapping[str, float] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    narrow_only: tuple[str, ...] = ()  # these fail in float64
    functions: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)
    squashed: float = 0.0
    clipped: Mapping[str, float] = field(default_factory=dict)
    targets: Mapping[str, Any] = field(default_factory=lambda: TARGETS)

    def ask_all(self, names: Iterable[str], request: Any, *more: Any) -> dict[str, Run]:
        return {name: self.ask(name, request) for name in names}

    def ask_each(self, names: Iterable[str], requests: Sequence[Any]) -> list[dict[str, Run]]:
        wanted = list(names)
        return [self.ask_all(wanted, request) for request in requests]

    def ask(self, name: str, request: PullBack | ApplyGradients) -> Run:
        if name in self.failing:
            return Run(name, Outcome.ERROR, message="no such kernel")
        if isinstance(request, ApplyGradients):
            return Run(name, Outcome.OK, self.update(name, request))
        try:
            return Run(name, Outcome.OK, self.pull(name, request))
        except NotImplementedError:
            return Run(name, Outcome.UNSUPPORTED, message="no kernel")

    def pull(self, name: str, request: PullBack) -> PulledBack:
        x = np.array(self.blobs.get(request.inputs[0]))
        if x.dtype == np.float64 and name in self.narrow_only:
            raise NotImplementedError
        given = self.blobs.get(str(request.cotangents[0])) if request.cotangents else ONES
        cotangent, function = np.array(given, x.dtype), self.functions.get(name, self.function)
        with np.errstate(all="ignore"):
            y, slope = function(x).astype(x.dtype), self.given[name](x, cotangent)
            if slope is not None and name == "tensorflow" and len(request.model.layers) == 1:
                slope = slope + x.dtype.type(self.squashed)
            if slope is not None and x.dtype == np.float32:
                slope = slope * np.float32(1 + self.narrow.get(name, 0.0))
        beside = tuple(self.beside(function, x, cotangent, move) for move in request.moves)
        leaf = Leaf("", 0, "x", slope, "" if slope is None else slope.dtype.name)
        told = Outputs((y,), (y.dtype.name,))
        border = 1e-7 if request.border is None else request.border
        with np.errstate(all="ignore"):
            value = np.sum(y * cotangent) + x.dtype.type(self.clipped.get(name, 0.0) * border)
        if x.dtype == np.float32:
            value = value * np.float32(1 + self.narrow.get(name, 0.0))
        return PulledBack(value=value, outputs=told, gradients=(leaf,), beside=beside)

    def beside(
        self, function: Callable[[Array], Array], x: Array, cotangent: Array, move: Move
    ) -> Beside:
        moved = x.copy()
        moved[move.index] = move.value
        with np.errstate(all="ignore"):
            y = function(moved)
        return Beside(np.sum(y * cotangent), Outputs((y,), (y.dtype.name,)))

    def update(self, name: str, request: ApplyGradients) -> GradientsApplied:
        x = np.array(self.blobs.get(request.weights[0]))
        found = self.given[name](x, np.array(self.blobs.get(request.gradients[0][0])))
        assert found is not None
        factor = 1 + (self.narrow.get(name, 0.0) if x.dtype == np.float32 else 0.0)
        return GradientsApplied(weights=((found * x.dtype.type(factor),),), memory=())


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., StageVerdict]:
    """Three targets and what each gives; the second and third as the first, unless told."""

    def judged(
        function: Callable[[Array], Array],
        first: Given,
        second: Given | None = None,
        third: Given | None = None,
        x: Array = POINT,
        update: bool = False,
        whole: WholeModel | None = None,
        loss: bool = False,
        part: str = "gradient",
        told_as: str = "",
        **more: Any,
    ) -> StageVerdict:
        given = dict(zip(NAMES, (first, second or first, third or first), strict=True))
        desk = Desk(BlobStore(tmp_path), function, given, **more)
        bench = Bench(cast(Pool, desk), TARGETS, Settings(noise_factor=0.0))
        exercise = Update({"class_name": "sgd"}, (x,), ((x,),)) if update else pull_at(x)
        if loss:
            exercise = Pull(SQUASHED, (x,), loss={"class_name": "mse"}, truth=np.zeros_like(x))
        done = do(bench, exercise, list(NAMES))
        part = "weights" if update else part
        seen = observe(bench, done, part)
        assert seen.kind is not None, "targets agree: nothing is decided"
        return decide_stage(StageInquiry(bench, done, told_as or part, seen, whole=whole))

    return judged


def pull_at(x: Array) -> Pull:
    return Pull(MODEL, (x,), (np.ones_like(x),))


def square(x: Array, c: Array) -> Array:
    return 2 * x * c


def relu(at_zero: float) -> Given:
    return lambda x, c: c * np.where(x == 0, at_zero, x > 0).astype(x.dtype)


Judge = Callable[..., StageVerdict]


def test_a_missing_factor_is_a_bug_by_central_differences(judge: Judge) -> None:
    said = judge(np.square, square, third=lambda x, c: x * c)
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-wrong")
    assert "Central differences in float64 on tensorflow give 4 for x[1, 0]" in said.reason


def test_the_majority_decides_nothing(judge: Judge) -> None:
    said = judge(np.square, lambda x, c: x * c, third=square)
    assert (said.triage, said.wrong) == ("bug", ("tensorflow", "jax"))


@pytest.mark.parametrize("third", [0.0, 0.5, 1.0])
def test_between_one_sided_derivatives_all_is_a_difference(judge: Judge, third: float) -> None:
    x = np.where(np.arange(6).reshape(2, 3) % 2, POINT, 0).astype(np.float32)
    said = judge(lambda x: np.maximum(x, 0), relu(0.25), third=relu(third), x=x)
    assert (said.triage, said.wrong, said.row) == ("difference", (), "gradient-kink")


def test_the_instrument_is_one_that_has_float64(judge: Judge) -> None:
    """Without central differences the two that have it would outvote the first at a kink."""
    x = np.where(np.arange(6).reshape(2, 3) % 2, POINT, 0).astype(np.float32)
    narrow = {"x": x, "narrow_only": ("tensorflow",)}
    said = judge(lambda x: np.maximum(x, 0), relu(0.0), relu(0.5), relu(0.5), **narrow)
    assert (said.triage, said.wrong, said.row) == ("difference", (), "gradient-kink")


@pytest.mark.parametrize("third", [-0.01, 1.01, 2.0])
def test_outside_of_them_it_is_a_bug(judge: Judge, third: float) -> None:
    x = np.where(np.arange(6).reshape(2, 3) % 2, POINT, 0).astype(np.float32)
    said = judge(lambda x: np.maximum(x, 0), relu(0.25), third=relu(third), x=x)
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-wrong")


def clipped(x: Array) -> Array:
    """As the square up to 1, and flat behind: at the border no one-sided derivative is its."""
    return np.minimum(np.square(x), 1)


def flat(x: Array, c: Array) -> Array:
    return np.where(np.abs(x) < 1, 2 * x * c, 0 * c)


def test_two_functions_have_two_derivatives(judge: Judge) -> None:
    """A loss clips what it is given, another library normalises it first."""
    said = judge(np.square, square, third=flat, functions={"torch": clipped})
    assert (said.triage, said.wrong, said.row) == ("difference", (), "gradient-own")
    assert "for x[1, 0]: tensorflow 4, jax 4, torch 0." in said.reason


def test_who_stands_alone_with_its_function_may_round_by_its_own_size(judge: Judge) -> None:
    """The others are flat everywhere, as a loss is where it clips: they round nothing."""
    flats: dict[str, Callable[[Array], Array]] = dict.fromkeys(("jax", "torch"), np.ones_like)
    nothing: Given = lambda x, c: 0 * c  # noqa: E731
    lost = 2 * LOST_DIGITS * LIMIT
    for off, verdict in ((0.5 * LIMIT, ("difference", ())), (lost, ("bug", ("tensorflow",)))):
        more = {"functions": flats, "narrow": {"tensorflow": off}}
        said = judge(np.square, lambda x, c: 2 * x * c, nothing, nothing, **more)
        assert (said.triage, said.wrong) == verdict


def test_who_does_not_give_the_derivative_of_its_own_function_is_wrong(judge: Judge) -> None:
    said = judge(np.square, square, third=lambda x, c: x * c, functions={"torch": clipped})
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-wrong")
    assert "Central differences in float64 on torch give 0 for x[1, 0]" in said.reason


def test_a_library_that_computes_in_float32_all_the_same_is_no_fine_instrument(
    judge: Judge,
) -> None:
    """Its smallest steps change nothing: that is no slope of 0."""
    narrow = {name: lambda x: np.tanh(x.astype(np.float32)).astype(x.dtype) for name in NAMES}
    said = judge(np.tanh, of_tanh(1), third=of_tanh(2), functions=narrow)
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-wrong")


def of_tanh(divided_by: float) -> Given:
    return lambda x, c: (c / np.cosh(x) ** 2 / divided_by).astype(x.dtype)


def test_a_loss_that_reads_the_logits_behind_an_output_is_a_class_of_its_own(judge: Judge) -> None:
    """With a layer between, nobody finds them."""
    said = judge(np.tanh, square, loss=True, squashed=0.5)
    assert (said.triage, said.wrong, said.row) == ("difference", (), "loss-of-logits")
    assert said.reason.startswith("tensorflow computes the loss from the logits")
    said = judge(np.tanh, square, third=lambda x, c: x * c, loss=True, squashed=0.5)
    assert said.row != "loss-of-logits"


@pytest.mark.parametrize(
    ("clipped", "narrow", "verdict"),
    [
        ({"tensorflow": 1e3}, {}, ("difference", (), "loss-of-clips")),
        ({"tensorflow": 1e3, "jax": -1e3}, {}, ("difference", (), "loss-of-clips")),
        # What does not shrink, or is not there in float64, is no matter of clipping.
        ({}, {"tensorflow": 1e-2}, ("bug", ("tensorflow",), "stage-wrong")),
        ({"tensorflow": 1e3}, {"jax": 1e-2}, ("bug", ("tensorflow", "jax"), "stage-wrong")),
    ],
)
def test_what_shrinks_with_the_border_of_a_loss_is_a_difference(
    judge: Judge, clipped: Mapping[str, float], narrow: Mapping[str, float], verdict: Any
) -> None:
    given = {"loss": True, "part": "value", "clipped": clipped, "narrow": narrow}
    said = judge(np.square, square, **given)
    assert (said.triage, said.wrong, said.row) == verdict


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_beats_nan_even_of_a_majority(judge: Judge, bad: float) -> None:
    def spoilt(x: Array, c: Array) -> Array:
        return np.where(x == 1, x.dtype.type(bad), 2 * x * c)

    said = judge(np.square, spoilt, third=square)
    assert (said.triage, said.wrong, said.row) == ("bug", ("tensorflow", "jax"), "gradient-nan")


def test_an_infinite_slope_may_be_infinite_and_may_not_be_nan(judge: Judge) -> None:
    x = np.where(np.arange(6).reshape(2, 3) == 1, 0, np.abs(POINT)).astype(np.float32)

    def root(at_zero: float) -> Given:
        return lambda x, c: np.where(x == 0, x.dtype.type(at_zero), c / (2 * np.sqrt(x)))

    said = judge(np.sqrt, root(np.inf), third=root(np.nan), x=x)
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-nan")
    said = judge(np.sqrt, root(np.inf), third=root(1e30), x=x)
    assert (said.triage, said.row) == ("difference", "gradient-kink")


@pytest.mark.parametrize(("steep", "row"), [(1e300, "gradient-overflows"), (1e37, "gradient-nan")])
def test_who_overflows_is_wrong_only_where_the_derivative_fits(
    judge: Judge, steep: float, row: str
) -> None:
    def slope(lost: float) -> Given:
        def given(x: Array, c: Array) -> Array:
            return (steep * c).astype(x.dtype) if x.dtype == np.float64 else c * np.float32(lost)

        return given

    said = judge(lambda x: steep * x, slope(np.inf), third=slope(np.nan))
    assert said.row == row
    assert said.triage == ("precision" if row == "gradient-overflows" else "bug")


def test_a_whole_to_which_infinity_comes_on_the_way_has_no_derivative(judge: Judge) -> None:
    nan: Given = lambda x, c: x * np.float32(np.nan)  # noqa: E731
    said = judge(np.square, square, third=nan, whole=WholeModel(at_infinity=True))
    assert (said.triage, said.wrong, said.row) == ("difference", (), "gradient-at-infinity")
    assert judge(np.square, square, third=nan, whole=WholeModel()).row == "gradient-nan"


def test_no_gradient_is_a_bug_only_where_it_is_not_zero(judge: Judge) -> None:
    said = judge(np.square, square, third=lambda x, c: None)
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-missing")
    with pytest.raises(AssertionError, match="targets agree"):
        judge(np.floor, lambda x, c: 0 * c, third=lambda x, c: None)


def test_a_gradient_has_the_form_of_what_it_is_of(judge: Judge) -> None:
    said = judge(np.square, square, lambda x, c: square(x, c)[:1], lambda x, c: square(x, c)[:1])
    assert (said.triage, said.wrong, said.row) == ("bug", ("jax", "torch"), "gradient-form")
    said = judge(np.square, square, third=lambda x, c: square(x, c).astype(np.float64))
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "gradient-form")


def test_who_fails_is_accused_by_a_majority_alone(judge: Judge) -> None:
    said = judge(np.square, square, failing=("torch",))
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "stage-fails")
    said = judge(np.square, square, failing=("torch", "jax"))
    assert (said.triage, said.wrong, said.row) == ("unknown", (), "stage-fails-undecided")


# Rounding of what is large beside the function: central differences in float64 see less.


@pytest.mark.parametrize(
    ("times", "triage", "row"),
    [
        (0.6 * LOST_DIGITS, "precision", "stage-float64"),
        (1.8 * LOST_DIGITS, "bug", "stage-wrong"),
    ],
)
def test_digits_that_float64_has_are_lost_up_to_a_border(
    judge: Judge, times: float, triage: str, row: str
) -> None:
    """An update, for which there are no central differences."""
    said = judge(
        np.square,
        lambda x, c: x - c / 4,
        update=True,
        narrow={"torch": times * LIMIT},
    )
    assert (said.triage, said.row) == (triage, row)
    assert said.wrong == (("torch",) if triage == "bug" else ())


def test_what_differs_in_float64_too_is_no_lost_digit(judge: Judge) -> None:
    factor = 1 + 4 * LIMIT
    said = judge(
        np.square,
        lambda x, c: x - c / 4,
        third=lambda x, c: ((x - c / 4) * x.dtype.type(factor)).astype(x.dtype),
        update=True,
    )
    assert (said.triage, said.wrong, said.row) == ("bug", ("torch",), "stage-wrong")
    assert "tensorflow and jax give in float64" in said.reason


@pytest.mark.parametrize(("times", "triage"), [(1.9, "precision"), (2.2, "bug")])
def test_who_is_hardly_farther_than_an_excused_one_is_no_worse(
    judge: Judge, times: float, triage: str
) -> None:
    """TensorFlow is off in float64 too, as far as the others are in float32, or farther."""
    lost = 4 * LIMIT
    said = judge(
        np.square,
        lambda x, c: ((x - c / 4) * x.dtype.type(1 + times * lost)).astype(x.dtype),
        lambda x, c: x - c / 4,
        lambda x, c: x - c / 4,
        update=True,
        narrow={"jax": -lost, "torch": -lost},
    )
    assert said.triage == triage
    assert said.wrong == (("tensorflow",) if triage == "bug" else ())


@pytest.mark.parametrize(("times", "triage"), [(0.9, "precision"), (1.1, "bug")])
def test_rounding_of_many_layers_adds_up_to_a_border(
    judge: Judge, times: float, triage: str
) -> None:
    factor = 1 + times * LOST_DIGITS * LIMIT
    off: Given = lambda x, c: (square(x, c) * x.dtype.type(factor)).astype(x.dtype)  # noqa: E731
    said = judge(np.square, square, third=off, whole=WholeModel())
    assert (said.triage, said.row) == (
        triage,
        "stage-adds-up" if triage == "precision" else "gradient-wrong",
    )
    assert judge(np.square, square, third=off).triage == "bug"


def test_what_the_gradients_of_layers_come_to_is_rounding_that_is_passed_on(judge: Judge) -> None:
    off: Given = lambda x, c: 2 * square(x, c)  # noqa: E731
    said = judge(np.square, square, third=off, whole=WholeModel(lambda: True))
    assert (said.triage, said.wrong, said.row) == ("precision", (), "stage-passed-on")
    assert judge(np.square, square, third=off, whole=WholeModel()).row == "gradient-wrong"


def test_steps_that_go_where_their_own_gradients_lead_are_rounding(judge: Judge) -> None:
    """Here the gradients stand for the weights after a step: how they came to be is not asked."""
    off: Given = lambda x, c: 2 * square(x, c)  # noqa: E731

    def said(whole: WholeModel | None) -> tuple[str, str]:
        found = judge(np.square, square, third=off, whole=whole, told_as="steps")
        return found.triage, found.row

    assert said(WholeModel(lambda: True)) == ("precision", "steps-lead-on")
    assert said(WholeModel()) == said(None) == ("unknown", "stage-undecided")


def test_nobody_is_accused_where_none_is_right(judge: Judge) -> None:
    said = judge(np.square, lambda x, c: x * c, third=lambda x, c: 3 * x * c)
    assert (said.triage, said.wrong, said.row) == ("unknown", (), "stage-none-right")


def test_two_libraries_must_agree_in_float64(judge: Judge) -> None:
    said = judge(
        np.square,
        lambda x, c: x - c / 4,
        lambda x, c: x - c / 2,
        lambda x, c: x - c,
        update=True,
    )
    assert (said.triage, said.wrong, said.row) == ("unknown", (), "stage-undecided")


def test_both_sides_of_an_even_spread_are_within_rounding(judge: Judge) -> None:
    """Each is 0.9 of what rounding explains from the exact gradient, and so 1.8 from the other."""
    part = 0.9 * LIMIT
    narrow = {"tensorflow": part, "jax": part, "torch": -part}
    said = judge(np.square, square, narrow=narrow)
    assert (said.triage, said.wrong, said.row) == ("precision", (), "gradient-rounding")
    said = judge(np.square, lambda x, c: x - c / 4, update=True, narrow=narrow)
    assert (said.triage, said.wrong, said.row) == ("precision", (), "stage-rounding")


def test_other_shapes_of_what_is_no_gradient_are_undecided(judge: Judge) -> None:
    said = judge(np.square, lambda x, c: x, third=lambda x, c: x[:1], update=True)
    assert (said.triage, said.row) == ("unknown", "stage-form")


@pytest.mark.parametrize(("off", "triage"), [(0, "difference"), (1, "unknown")])
def test_the_same_numbers_in_another_type_are_a_difference(
    judge: Judge, off: int, triage: str
) -> None:
    third: Given = lambda x, c: (x + off).astype(np.float64)  # noqa: E731
    said = judge(np.square, lambda x, c: x, third=third, update=True)
    assert (said.triage, said.wrong) == (triage, ())
    assert said.row == ("stage-form" if off else "stage-types")


def test_a_gradient_that_is_exactly_zero_has_the_floor_of_its_case(tmp_path: Path) -> None:
    """Noise beside a large gradient is equal; beside none it is not."""

    def seen(large: float, noise: float) -> str | None:
        given = dict.fromkeys(NAMES, square)
        desk = Desk(BlobStore(tmp_path), np.square, given)
        bench = Bench(cast(Pool, desk), TARGETS, Settings(noise_factor=0.0))
        done = do(bench, pull_at(POINT), list(NAMES))
        leaves = {
            name: (
                Leaf("", 0, "x", large * POINT, "float32"),
                Leaf("", 0, "x", np.full((2, 3), noise * (name == "jax"), np.float32), "float32"),
            )
            for name in NAMES
        }
        replies = {n: replace(reply, gradients=leaves[n]) for n, reply in done.replies.items()}
        return observe(bench, Exercised(done.exercise, replies, {}), "gradient").kind

    floor = LIMIT * 2.0  # the largest number of POINT
    assert seen(1.0, 0.9 * floor) is None
    assert seen(1.0, 1.1 * floor) == "inconsistency"
    assert seen(1e-3, 0.9 * floor) == "inconsistency"


@pytest.mark.parametrize(
    ("left", "kind"), [(PLACE["float32"] / 4, None), (2.0**-13, "inconsistency")]
)
def test_what_rounding_leaves_of_terms_that_cancel_is_measured_in_float64(
    left: float, kind: str | None, tmp_path: Path
) -> None:
    """The whole case is zero: terms of a size of 1, of which some places are left."""

    def of_type(places: Mapping[str, float]) -> Given:
        return lambda x, c: np.full_like(x, places[x.dtype.name])

    nothing = of_type({"float32": 0.0, "float64": 0.0})
    given = {**dict.fromkeys(NAMES, nothing)}
    given["jax"] = of_type({"float32": left, "float64": PLACE["float64"] / 4})
    desk = Desk(BlobStore(tmp_path), np.sign, given)
    bench = Bench(cast(Pool, desk), TARGETS, Settings(noise_factor=0.0))
    done = do(bench, pull_at(POINT), list(NAMES))
    assert observe(bench, done, "gradient").kind == kind


def test_every_row_was_met() -> None:
    """Rows are named in this file, each by a test that it decides."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert [row.name for row in STAGE_ROWS if f'"{row.name}"' not in text] == []
