"""Every row of the verdict's table, just inside its border and just outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from conftest import fake
from outvote.bench.bench import Bench
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.outputs import Outputs
from outvote.core.protocol import Hello, Ran
from outvote.core.specimen import Specimen
from outvote.core.target import Outcome, Run, Target
from outvote.dialects.keras.targets import BUILT_IN
from outvote.dialects.onnx.nouns.node import WEIGHT
from outvote.findings.blame import WHOLE_GRAPH, WholeGraph
from outvote.judge.observation import Observation, observed
from outvote.judge.rounding import Rounding, layer_rounding
from outvote.judge.rows import first
from outvote.judge.tolerance import DIGIT, FARTHER, LAYER_PLACES, LOST_DIGITS, NOISE_FACTOR, NUDGES
from outvote.triage import inquiry
from outvote.triage.differences import Difference
from outvote.triage.verdict import ROWS, Verdict, decide

PLACE = 2.0**-23
TARGETS = {name: BUILT_IN[name] for name in ("tensorflow", "jax", "torch", "openvino", "reference")}
TARGETS |= {name: fake(name) for name in ("a", "b", "c", "d")}  # nobody asks them in float64
TARGETS["maker"] = replace(BUILT_IN["torch"], name="maker", library="maker", defines=True)


@dataclass
class Desk:
    """Stands for a Bench: hands out what targets give in float64, and for moved inputs."""

    blobs: BlobStore
    wide: Mapping[str, Array] = field(default_factory=dict)
    moved: Sequence[Array] = ()
    precision: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=lambda: TARGETS)
    asked: list[str] = field(default_factory=list)

    @property
    def pool(self) -> Desk:
        return self

    def start(self, names: Sequence[str]) -> dict[str, Run]:
        told = {
            name: Hello(versions={}, precision=self.precision.get(name, {}), python="", platform="")
            for name in names
        }
        return {name: Run(name, Outcome.OK, reply) for name, reply in told.items()}

    def run(self, specimen: Specimen, names: Sequence[str], **more: Any) -> dict[str, Run]:
        if more.get("exact"):
            self.asked += names
            found = {name: self.wide[name] for name in names if name in self.wide}
        else:
            found = {name: self.moved[len(self.asked) % len(self.moved)] for name in names}
            self.asked += names
        return {
            name: Run(name, Outcome.OK, Ran(outputs=Outputs((array,), (array.dtype.name,))))
            for name, array in found.items()
        }

    def judged(
        self, outputs: Any, failures: Any, rounding: Rounding, specimen: Specimen
    ) -> Observation:
        kind = specimen.last.kind
        return observed(specimen.inputs, outputs, failures, rounding, self.targets, kind)


@dataclass
class Case:
    """One specimen of one layer and what targets make of it."""

    read: Any  # the input, one row
    given: Mapping[str, Any]  # target -> numbers, or a message: it fails
    kind: str = "Rescaling"  # multiplies by 1 and adds 0 here: the exact result is what is read
    config: Mapping[str, Any] = field(default_factory=lambda: {"scale": 1.0, "offset": 0.0})
    dtype: str | Mapping[str, str] = "float32"
    read_dtype: str = "float32"
    weights: Sequence[Any] = ()
    wide: Mapping[str, Any] = field(default_factory=dict)
    moved: Sequence[Any] = ()
    precision: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    twice: bool = False  # the layer reads its input twice
    dialect: str = "keras"

    def type_of(self, name: str) -> str:
        return self.dtype if isinstance(self.dtype, str) else self.dtype[name]

    def verdict(self, folder: Path) -> Verdict:
        blobs = BlobStore(folder)
        arrays = [np.array(w, "float32") for w in self.weights]
        weights = tuple(
            Weight(f"w{i}", blobs.put(array), array.shape) for i, array in enumerate(arrays)
        )
        refs: Any = [{REF: ["x", 0]}]
        args = [refs * 2] if self.twice else refs
        config = {"name": "l", **self.config}
        origin = {}
        if self.dialect == "onnx":  # its constants are arguments, and a node has no name inside
            args = [*refs, *({WEIGHT: place} for place, _ in enumerate(weights))]
            config, origin = dict(self.config), {"opset": {"": 17}}
        layer = Layer("l", self.kind, config, args=args, weights=weights, origin=origin)
        read = np.array([self.read], self.read_dtype)
        item = Input("x", (None, *read.shape[1:]), self.read_dtype)
        specimen = Specimen(Model("m", (item,), (layer,), (Ref("l"),), self.dialect), (read,))
        outputs, failures = {}, {}
        for name, found in self.given.items():
            if isinstance(found, str):
                failures[name] = Run(name, Outcome.ERROR, {"error": "E"}, message=found)
            else:
                dtype = self.type_of(name)
                outputs[name] = Outputs((np.array([found]).astype(dtype),), (dtype,))
        rounding = layer_rounding(outputs.values(), 1, NOISE_FACTOR)
        seen = observed(specimen.inputs, outputs, failures, rounding, TARGETS, self.kind)
        desk = Desk(
            blobs,
            {name: np.array([found], "float64") for name, found in self.wide.items()},
            [np.array([found], "float32") for found in self.moved],
            self.precision,
        )
        return decide(cast(Bench, desk), specimen, seen)


def off(places: float, of: float = 1.0) -> float:
    """A number that is so many last places above another."""
    return of + places * PLACE


MORE = {"a": [1.0], "b": [1.0]}  # two who are right
UNKNOWN: Any = {"kind": "Scale", "config": {}}  # no formula is known for it
ADDED: Any = {"kind": "Subtract", "config": {}, "twice": True}
DENSE: Any = {"kind": "Dense", "config": {"units": 1, "use_bias": False, "activation": "linear"}}
PRODUCT: Any = {**DENSE, "weights": [[[1.0]]]}
TF32 = {"c": {"products": "tf32"}}
NO_64 = {"c": {"x64": False}}
INTS = {"a": "int64", "b": "int64", "c": "int32"}
FAR = LOST_DIGITS * LAYER_PLACES  # places
LARGE = {"a": [65504.0, 1.0], "b": [65504.0, 1.0]}
WIDE = {"scale": 1.0, "offset": 0.0, "dtype": "float64"}
THIRD_IS_WIDE = {"a": "float32", "b": "float32", "c": "float64"}
WHOLE_OR_WIDE = {"a": "int32", "b": "int32", "c": "float64"}
HALF: Any = {"dtype": "float16", "read_dtype": "float32"}


BORDERS: list[tuple[str, Case, str, Case]] = [
    # row, inside, the row that decides just outside, outside
    (
        "fails",
        Case([1.0], {**MORE, "c": "no"}),
        "fails-reference",
        Case([1.0], {"a": [1.0], "c": "no"}),
    ),
    (
        "fails-reference",
        Case([1.0], {"a": [off(8)], "c": "no"}),
        "fails-undecided",
        Case([1.0], {"a": [off(9)], "c": "no"}),
    ),
    (
        "fails-undecided",
        Case([1.0], {"a": [1.0], "c": "no"}, **UNKNOWN),
        "fails",
        Case([1.0], {**MORE, "c": "no"}, **UNKNOWN),
    ),
    (
        "refused",
        Case([1.0], {"a": "no", "b": "no", "c": []}, **UNKNOWN),
        "fails",
        Case([1.0], {"a": "no", "b": [1.0], "c": [1.0]}, **UNKNOWN),
    ),
    (
        "declared-width",
        Case([1], {"a": [1], "b": [1], "c": [1]}, dtype=INTS, precision=NO_64, **UNKNOWN),
        "width",
        Case([1], {"a": [1], "b": [1], "c": [1]}, dtype=INTS, **UNKNOWN),
    ),
    (
        "width",
        Case([1], {"a": [1], "b": [1], "c": [1]}, dtype=INTS, **UNKNOWN),
        "form",
        Case([1], {"a": [1], "b": [1], "c": [2]}, dtype=INTS, **UNKNOWN),
    ),
    (
        "shape",
        Case([1.0], {**MORE, "c": [1.0, 1.0]}),
        "form",
        Case([1.0], {**MORE, "c": [1.0]}, dtype={"a": "float32", "b": "float32", "c": "float64"}),
    ),
    (
        "type",
        Case([1.0], {"a": [1.0], "b": [1.0], "c": [1.0]}, config=WIDE, dtype=THIRD_IS_WIDE),
        "form",  # what the layer is told says nothing of whole numbers
        Case([1], {"a": [1], "b": [1], "c": [1]}, config=WIDE, dtype=WHOLE_OR_WIDE),
    ),
    (
        "shape-of-none",
        Case([1.0], {"a": [1.0] * 2, "b": [1.0] * 2, "c": [1.0] * 3}),
        "shape",
        Case([1.0], {"a": [1.0], "b": [1.0] * 2, "c": [1.0] * 3}),
    ),
    (
        "form",
        Case([1.0], {**MORE, "c": [1.0, 1.0]}, **UNKNOWN),
        "form-undecided",
        Case([1.0], {"a": [1.0], "c": [1.0, 1.0]}, **UNKNOWN),
    ),
    (
        "form-undecided",
        Case([1.0], {"a": [1.0], "c": [1.0, 1.0]}, **UNKNOWN),
        "shape",
        Case([1.0], {"a": [1.0], "c": [1.0, 1.0]}),
    ),
    (
        "rounding",
        Case([1.0], {"a": [off(8)], "b": [off(-7.5)]}),
        "no-farther",
        Case([1.0], {"a": [off(8)], "b": [off(-9)]}),
    ),
    (
        "range",  # 65504 is the largest of float16
        Case([65505.0, 1.0], {**LARGE, "c": [np.inf, 1.0]}, **HALF),
        "wrong",
        Case([65504.0, 1.0], {**LARGE, "c": [np.inf, 1.0]}, **HALF),
    ),
    (
        "range",  # and it excuses that element alone
        Case([65505.0, 1.0], {**LARGE, "c": [np.inf, 1.0]}, **HALF),
        "wrong",
        Case([65505.0, 1.0], {**LARGE, "c": [np.inf, 1.5]}, **HALF),
    ),
    (
        "undefined",
        Case([np.inf, 1.0], {"a": [np.nan, 0.0], "b": [np.nan, 0.0], "c": [0.0, 0.0]}, **ADDED),
        "wrong",  # it excuses that element alone
        Case([np.inf, 1.0], {"a": [np.nan, 0.0], "b": [np.nan, 0.0], "c": [0.0, 0.5]}, **ADDED),
    ),
    (
        "undefined",
        Case([np.inf, 1.0], {"a": [np.nan, 0.0], "b": [np.nan, 0.0], "c": [0.0, 0.0]}, **ADDED),
        "wrong",  # what is NaN stays NaN
        Case([np.nan, 1.0], {"a": [np.nan, 0.0], "b": [np.nan, 0.0], "c": [0.0, 0.0]}, **ADDED),
    ),
    (
        "declared",  # TF32 has 2 ** 13 times coarser places
        Case([1.0], {**MORE, "c": [off(8 * 2**13 - 1)]}, precision=TF32, **PRODUCT),
        "wrong",
        Case([1.0], {**MORE, "c": [off(8 * 2**13 * 1.01)]}, precision=TF32, **PRODUCT),
    ),
    (
        "declared",
        Case([1.0], {**MORE, "c": [off(100)]}, precision=TF32, **PRODUCT),
        "wrong",  # a layer that multiplies no matrices
        Case([1.0], {**MORE, "c": [off(100)]}, precision=TF32),
    ),
    (
        "narrow-inside",
        Case([1.0], {**MORE, "c": [off(7.9)]}, dtype="float64", read_dtype="float64"),
        "wrong",
        Case([1.0], {**MORE, "c": [off(8.1)]}, dtype="float64", read_dtype="float64"),
    ),
    (
        "overflow",  # half of the largest of float16
        Case([32752.0], {"a": [np.inf], "b": [np.inf], "c": [32752.0]}, **HALF),
        "majority-wrong",
        Case(
            [32753.0], {"a": [np.inf], "b": [np.inf], "c": [32752.0]}, moved=[[32752.0]], **HALF
        ),
    ),
    (
        "overflow",  # NaN is the fault of who gives it, however far others are
        Case([1.0], {"a": [np.nan], "b": [np.nan], "c": [1.001], "d": [1.01]}),
        "none-right",
        Case([1.0], {"a": [1.1], "b": [1.1], "c": [1.001], "d": [1.01]}),
    ),
    (
        "overflow-of-all",
        Case([300.0], {"a": [np.inf], "reference": [300.0]}, **HALF),
        "overflow",
        Case([300.0], {"a": [np.inf], "b": [300.0], "reference": [300.0]}, **HALF),
    ),
    (
        "overflow-of-all",  # whether what is read adds up within the type or not
        Case([3e4, 3e4, 6e3], {"a": [np.inf, 3e4, 6e3], "reference": [3e4, 3e4, 6e3]}, **HALF),
        "overflow",
        Case([3e4, 6e3, 3e4], {"a": [np.inf, 6e3, 3e4], "b": [3e4, 6e3, 3e4]}, **HALF),
    ),
    (
        "float64",
        Case([1.0], {**MORE, "torch": [off(FAR - 1)]}, wide={"torch": [1.0]}),
        "wrong",
        Case([1.0], {**MORE, "torch": [off(FAR + 1)]}, wide={"torch": [1.0]}),
    ),
    (
        "float64",  # one digit nearer, and right
        Case([1.0], {**MORE, "torch": [off(70)]}, wide={"torch": [1 + 6.9 * PLACE]}),
        "wrong",
        Case([1.0], {**MORE, "torch": [off(70)]}, wide={"torch": [1 + 7.1 * PLACE]}),
    ),
    (
        "last-places",  # of 1, though the result is small
        Case([1e-3], {"a": [1e-3], "b": [1e-3], "openvino": [1e-3 + 7.9 * PLACE]}),
        "wrong",
        Case([1e-3], {"a": [1e-3], "b": [1e-3], "openvino": [1e-3 + 8.1 * PLACE]}),
    ),
    (
        "last-places",  # who can be asked in float64, and is not right there, has no such excuse
        Case([1e-3], {"a": [1e-3], "b": [1e-3], "openvino": [1e-3 + 7 * PLACE]}),
        "wrong",
        Case(
            [1e-3],
            {"a": [1e-3], "b": [1e-3], "torch": [1e-3 + 7 * PLACE]},
            wide={"torch": [1e-3 + 7 * PLACE + 1e-12]},
        ),
    ),
    (
        "equally-far",
        Case([1.0], {"a": [off(20)], "b": [off(-20 * FARTHER + 0.5)]}),
        "none-right-undecided",
        Case([1.0], {"a": [off(20)], "b": [off(-20 * FARTHER - 0.5)]}),
    ),
    (
        "none-right",
        Case([1.0], {"a": [off(20)], "b": [off(20)], "c": [off(-41)]}),
        "none-right-undecided",
        Case([1.0], {"a": [off(20)], "c": [off(-41)]}),
    ),
    (
        "none-right-farther",
        Case([1.0], {"a": [off(20)], "c": [off(-20 * DIGIT - 1)]}),
        "none-right-undecided",
        Case([1.0], {"a": [off(20)], "c": [off(-20 * DIGIT + 1)]}),
    ),
    (
        "none-right-undecided",
        Case([1.0], {"a": [off(20)], "c": [off(-41)]}),
        "wrong",
        Case([1.0], {"a": [off(8)], "c": [off(-41)]}),
    ),
    (
        "no-farther",
        Case([1.0], {"a": [off(8)], "b": [1.0], "c": [off(-8 * FARTHER + 0.5)]}),
        "wrong",
        Case([1.0], {"a": [off(8)], "b": [1.0], "c": [off(-8 * FARTHER - 0.5)]}),
    ),
    (
        "undecided",
        Case([1.0], {"a": [1.0], "c": [2.0]}, **UNKNOWN),
        "outvoted",
        Case([1.0], {**MORE, "c": [2.0]}, **UNKNOWN),
    ),
    (
        "wrong",  # three answers: what the layer's own library means decides
        Case([1.0], {"maker": [1.0], "a": [2.0], "c": [3.0]}, wide={"maker": [1.0]}, **UNKNOWN),
        "undecided",  # none of the three says what the layer means
        Case([1.0], {"torch": [1.0], "a": [2.0], "c": [3.0]}, wide={"torch": [1.0]}, **UNKNOWN),
    ),
    (
        "wrong",
        Case([1.0], {"maker": [1.0], "a": [2.0], "c": [3.0]}, wide={"maker": [1.0]}, **UNKNOWN),
        "undecided",  # it gives something else in float64
        Case([1.0], {"maker": [1.0], "a": [2.0], "c": [3.0]}, wide={"maker": [9.0]}, **UNKNOWN),
    ),
    (
        "wrong",
        Case([1.0], {"maker": [1.0], "a": [2.0], "c": [3.0]}, wide={"maker": [1.0]}, **UNKNOWN),
        "undecided",  # of two answers either may be the wrong one
        Case([1.0], {"maker": [1.0], "a": [2.0]}, wide={"maker": [1.0]}, **UNKNOWN),
    ),
    (
        "meant-nan",
        Case([1.0], {**MORE, "maker": [np.nan]}, wide={"maker": [np.nan]}, **UNKNOWN),
        "outvoted",  # in float64 it is a number
        Case([1.0], {**MORE, "maker": [np.nan]}, wide={"maker": [1.0]}, **UNKNOWN),
    ),
    (
        "meant-nan",
        Case([1.0], {**MORE, "maker": [np.nan]}, wide={"maker": [np.nan]}, **UNKNOWN),
        "outvoted",  # it does not say what the layer means
        Case([1.0], {**MORE, "torch": [np.nan]}, wide={"torch": [np.nan]}, **UNKNOWN),
    ),
    (
        "edge",
        Case([1.0, 1.0], {**{n: [1.0, 1.0] for n in "ab"}, "c": [2.0, 1.0]}, moved=[[2.0, 1.0]]),
        "wrong",  # every element must be reached
        Case([1.0, 1.0], {**{n: [1.0, 1.0] for n in "ab"}, "c": [2.0, 2.0]}, moved=[[2.0, 1.0]]),
    ),
    (
        "edge",
        Case([1.0], {**MORE, "c": [2.0]}, moved=[[2.0]]),
        "wrong",  # a layer that only moves numbers
        Case([1.0], {**MORE, "c": [2.0]}, moved=[[2.0]], kind="Flatten", config={}),
    ),
    (
        "majority-wrong",
        Case([1.0], {"a": [2.0], "b": [2.0], "c": [1.0]}, moved=[[1.0]]),
        "wrong",
        Case([1.0], {"a": [2.0], "b": [1.0], "c": [1.0]}, moved=[[1.0]]),
    ),
    (
        "wrong",
        Case([1.0], {**MORE, "c": [2.0]}, moved=[[1.0]]),
        "outvoted",
        Case([1.0], {**MORE, "c": [2.0]}, moved=[[1.0]], **UNKNOWN),
    ),
]  # fmt: skip


def with_moves(case: Case) -> Case:
    """Unless a case says otherwise, moving the input changes nothing."""
    if case.moved:
        return case
    right = next((found for found in case.given.values() if not isinstance(found, str)), [1.0])
    return replace(case, moved=[right])


@pytest.mark.parametrize(
    ("row", "inside", "other", "outside"),
    BORDERS,
    ids=[b[0] for b in BORDERS],
)
def test_a_row_holds_up_to_its_border(
    row: str, inside: Case, other: str, outside: Case, tmp_path: Path
) -> None:
    assert with_moves(inside).verdict(tmp_path).row == row
    assert with_moves(outside).verdict(tmp_path).row == other


def test_every_row_has_a_border_test() -> None:
    tested = {row for row, *_ in BORDERS} | {other for _, _, other, _ in BORDERS}
    elsewhere = {"listed", "listed-form", "in-turn", "illegal"}  # below; test_onnx_differences.py
    assert {row.name for row in ROWS} - tested == elsewhere


@pytest.mark.parametrize(("kinds", "row"), [(("inconsistency",), "listed"), (("nan",), "wrong")])
def test_a_listed_difference_is_no_bug(
    kinds: tuple[str, ...], row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Difference(("Rescaling",), kinds, "It is meant", "https://example.org")
    monkeypatch.setattr(inquiry, "listed", lambda asked: entry if entry.covers(asked) else None)
    found = Case([1.0], {**MORE, "c": [2.0]}, moved=[[1.0]]).verdict(tmp_path)
    assert found.row == row
    assert (found.triage, "https://example.org" in found.reason) == (
        ("difference", True) if row == "listed" else ("bug", False)
    )


@pytest.mark.parametrize(("kinds", "row"), [(("shape",), "listed-form"), (("nan",), "shape")])
def test_a_listed_form_is_no_bug(
    kinds: tuple[str, ...], row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Difference(("Rescaling",), kinds, "It is meant", "https://example.org")
    monkeypatch.setattr(inquiry, "listed", lambda asked: entry if entry.covers(asked) else None)
    assert Case([1.0], {**MORE, "c": [1.0, 1.0]}).verdict(tmp_path).row == row


# What is said is what was done.


@pytest.mark.parametrize(
    ("times", "name", "row"),
    [
        (FARTHER - 0.01, "c", "in-turn"),
        (FARTHER + 0.01, "c", "wrong"),
        (1.0, "torch", "wrong"),  # who computes it in float64, and is wrong there
    ],
)
def test_a_sum_may_be_as_far_off_as_its_terms_added_in_turn(
    times: float, name: str, row: str, tmp_path: Path
) -> None:
    x, w = np.full(10_000, 0.1, np.float32), np.ones((10_000, 1), np.float32)
    exact = float(x.astype(np.float64).sum())
    drift = abs(float(np.add.accumulate(x)[-1]) - exact)
    found = exact + times * drift
    case = Case(
        x, {"a": [exact], "b": [exact], name: [found]}, "MatMul", {}, weights=[w],
        wide={"torch": [found]}, dialect="onnx",
    )  # fmt: skip
    verdict = with_moves(case).verdict(tmp_path)
    assert verdict.row == row
    if row == "in-turn":
        assert f"are off by {drift / exact:.2g}" in verdict.reason


def test_float64_is_spoken_of_where_it_ran_and_of_whom_it_ran_on(tmp_path: Path) -> None:
    found = Case([1.0], {**MORE, "torch": [off(70)]}, wide={"torch": [1.0 + 1e-15]}).verdict(
        tmp_path
    )
    assert found.triage == "precision"
    assert (
        "In float64 it vanishes: asked there, the exact result comes from torch (dist"
        in found.reason
    )
    # OpenVINO is not asked: of the same difference float64 says nothing.
    found = with_moves(Case([1.0], {**MORE, "openvino": [off(70)]})).verdict(tmp_path)
    assert (found.row, found.wrong) == ("wrong", ("openvino",))
    assert "In float64" not in found.reason


def test_a_layer_that_computes_in_float32_inside_was_not_asked_in_float64(tmp_path: Path) -> None:
    """It is asked, and gives what float32 holds: that says nothing for it, and nothing against."""
    near = np.float32(1e-3 + 7 * PLACE)
    case = Case([1e-3], {"a": [1e-3], "b": [1e-3], "torch": [near]}, wide={"torch": [near]})
    found = case.verdict(tmp_path)
    assert found.row == "last-places"
    assert "torch did not compute it in float64" in found.reason


def test_who_cannot_be_asked_in_float64_keeps_its_vote(tmp_path: Path) -> None:
    """Two and two: that OpenVINO is not asked in float64 must not decide about NaN."""
    given = {"tensorflow": [0.0], "openvino": [0.0], "jax": [np.nan], "torch": [np.nan]}
    wide = {"tensorflow": [0.0], "jax": [np.nan], "torch": [np.nan]}
    assert Case([1.0], given, wide=wide, **UNKNOWN).verdict(tmp_path).row == "undecided"
    # Lost digits are another matter: there float64 shows what is right.
    given = {"tensorflow": [1.2], "openvino": [1.1], "jax": [1.0], "torch": [1.0]}
    wide = {"tensorflow": [1.0], "jax": [1.0], "torch": [1.0]}
    found = with_moves(Case([1.0], given, wide=wide, **UNKNOWN)).verdict(tmp_path)
    assert found.exact is not None
    assert found.exact.source == "tensorflow and jax and torch in float64"


def test_large_weights_excuse_nothing(tmp_path: Path) -> None:
    """The places are those of what is read, or of 1, not of the largest weight."""
    layer: Any = {**DENSE, "weights": [[[1000.0]]]}
    given = {"a": [0.0], "b": [0.0], "openvino": [9e-4]}
    found = Case([0.0], given, moved=[[0.0]], **layer).verdict(tmp_path)
    assert (found.row, found.triage) == ("wrong", "bug")


def test_where_all_are_wrong_the_outvoted_may_be_no_farther(tmp_path: Path) -> None:
    def case(places: float) -> Case:
        given = {"tensorflow": [off(100)], "jax": [off(100)], "torch": [off(-places)]}
        return Case([1.0], given, wide={name: [1.0] for name in given})

    # Without the excuse of float64 these would be equally far: they are three digits apart here.
    assert case(100 * FARTHER - 1).verdict(tmp_path).row == "float64"
    assert case(100 * FARTHER + 1).verdict(tmp_path).row == "none-right"


@pytest.mark.parametrize(
    ("given", "accused"),
    [
        ({"a": [off(100)], "b": [off(100)], "c": [off(20)]}, ("a", "b")),  # the majority is farther
        ({"a": [np.nan], "b": [np.nan], "c": [off(20)]}, ("a", "b")),
        ({"a": [np.inf], "b": [np.inf], "c": [1.0]}, ("a", "b")),  # an overflow whose result fits
        ({"a": [np.nan], "b": [np.inf], "c": [off(20)], "d": [off(20)]}, ("a", "b")),
        ({"a": [np.nan], "c": [off(20)]}, ("a",)),
        ({"a": [np.nan], "c": [1.0]}, ("a",)),
    ],
)
def test_the_nearest_to_the_exact_result_is_not_accused(
    given: dict[str, Any], accused: tuple[str, ...], tmp_path: Path
) -> None:
    verdict = Case([1.0], given, moved=[[1.0]]).verdict(tmp_path)
    assert (verdict.triage, verdict.wrong) == ("bug", accused)


def test_an_overflow_on_the_way_is_no_rounding_though_float64_has_none(tmp_path: Path) -> None:
    """A norm that squares in float16: the majority overflows, and the exact result fits."""
    given = {"tensorflow": [np.inf], "jax": [np.inf], "torch": [off(100)]}
    verdict = Case([1.0], given, wide={name: [1.0] for name in given}).verdict(tmp_path)
    assert (verdict.triage, verdict.wrong) == ("bug", ("tensorflow", "jax"))


@pytest.mark.parametrize("wide", [True, False])
def test_a_norm_that_gives_zero_for_a_variance_beyond_its_type_lost_no_last_places(
    wide: bool, tmp_path: Path
) -> None:
    """The numbers that it reads are large, and what it gives is not: 0 is another number."""
    given = {"tensorflow": [0.0], "jax": [0.0], "openvino": [0.0], "torch": [1.0]}
    named = {"kind": "Rescaling", "config": {"scale": 2.0**-15, "offset": 0.0}}
    answers = {name: [1.0] for name in given} if wide else {}
    found = Case([32768.0], given, wide=answers, moved=[[1.0]], dtype="float16", **named)  # type: ignore[arg-type]
    verdict = found.verdict(tmp_path)
    assert (verdict.triage, verdict.wrong) == ("bug", ("tensorflow", "jax", "openvino"))


def test_who_gives_the_type_that_was_asked_for_is_not_accused(tmp_path: Path) -> None:
    """The majority narrows float64 to float32."""
    verdict = Case([1.0], {**MORE, "c": [1.0]}, config=WIDE, dtype=THIRD_IS_WIDE).verdict(tmp_path)
    assert (verdict.row, verdict.wrong) == ("type", ("a", "b"))


def test_what_all_give_alike_is_not_what_they_differ_in(tmp_path: Path) -> None:
    """All give NaN for the first number, which is a fault of all: the second parts them."""
    rest = {"a": [np.nan, 2.0], "b": [np.nan, 2.0]}
    verdict = Case([1.0, 2.0], {**rest, "c": [np.nan, np.nan]}).verdict(tmp_path)
    assert (verdict.row, verdict.wrong) == ("overflow", ("c",))
    verdict = Case([1.0, 2.0], {**rest, "c": [1.0, 2.0]}).verdict(tmp_path)
    assert (verdict.row, verdict.wrong) == ("overflow", ("a", "b"))


def test_where_all_are_wrong_last_places_of_one_are_no_more_than_that(tmp_path: Path) -> None:
    """x - tanh(x) of small numbers: everybody loses digits, and not equally many."""
    given = {"a": [1e-6 + PLACE], "b": [1e-6 + PLACE], "torch": [1e-6 + 5 * PLACE]}
    assert Case([1e-6], given, wide={"torch": [1e-6]}).verdict(tmp_path).row == "last-places"
    assert Case([1e-6], given, wide={"torch": [2e-6 + 1e-14]}).verdict(tmp_path).row == "none-right"


def test_rows_of_pictures_and_ramps_have_no_excuse_of_a_step(tmp_path: Path) -> None:
    """A wrong neighbour on whole numbers: one in four differs by one, and it is a bug."""
    read = [0.0, 1.0, 2.0, 3.0]
    given = {"a": read, "b": read, "c": [1.0, 1.0, 2.0, 3.0]}
    assert Case(read, given, moved=[read]).verdict(tmp_path).triage == "bug"


def test_an_edge_is_looked_for_as_often_as_it_is_said(tmp_path: Path) -> None:
    moves = [[1.0]] * (NUDGES - 1) + [[2.0]]
    assert Case([1.0], {**MORE, "c": [2.0]}, moved=moves).verdict(tmp_path).row == "edge"
    assert (
        Case([1.0], {**MORE, "c": [2.0]}, moved=[*moves[:-1], [1.0]]).verdict(tmp_path).row
        == "wrong"
    )


# Differences that only the whole graph shows.


def whole(**changes: Any) -> WholeGraph:
    known = WholeGraph(("a", "b"), "inconsistency", (), ("b",), LOST_DIGITS * 0.99e-6, 1e-6)
    return replace(known, **changes)


@pytest.mark.parametrize(
    ("facts", "row"),
    [
        (whole(), "adds-up"),
        (whole(distance=LOST_DIGITS * 1.01e-6), "interfere"),
        (whole(compiled=("a",)), "interfere"),
        (whole(kind="nan"), "interfere"),
        (whole(explained=None), "interfere"),  # what was not measured is not excused
        (whole(distance=1.0, outvoted=()), "interfere-undecided"),
        (whole(uncut="it is another"), "adds-up"),
        (whole(uncut="it is another", distance=1.0), "uncut"),
    ],
)
def test_rows_of_the_whole_graph(facts: WholeGraph, row: str) -> None:
    assert first(WHOLE_GRAPH, facts).name == row


def test_a_whole_graph_may_not_be_off_by_more_than_its_own_noise_allows() -> None:
    """Three thousandths are no rounding where the noise is 1e-7, whatever a model may differ by."""
    assert first(WHOLE_GRAPH, whole(distance=3e-3, explained=1e-6)).triage == "bug"


def test_of_three_answers_those_that_are_not_what_the_layer_means_are_accused(
    tmp_path: Path,
) -> None:
    given = {"maker": [1.0], "a": [2.0], "c": [3.0]}
    case = Case([1.0], given, wide={"maker": [1.0]}, moved=[[1.0]], **UNKNOWN)
    found = case.verdict(tmp_path)
    assert found.wrong == ("a", "c")
    assert "maker in float64, whose library defines this layer" in found.reason
