"""What ONNX' text leaves open is no bug, and only that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest

from onnx_here import NAME, Here
from outvote.bench.bench import Bench
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.core.outputs import Outputs
from outvote.core.protocol import Ran
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.core.target import Outcome, Run
from outvote.dialects.onnx.nouns.attributes import illegal
from outvote.dialects.onnx.nouns.node import WEIGHT, Origin, ref, with_origin
from outvote.dialects.onnx.reductions import smaller_attributes
from outvote.dialects.onnx.reference import reference
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.judge.observation import Observation, observed
from outvote.judge.rounding import layer_rounding
from outvote.judge.tolerance import NOISE_FACTOR
from outvote.triage.differences import Difference, differences_of, listed
from outvote.triage.inquiry import Inquiry
from outvote.triage.verdict import decide
from test_onnx_catalogue import of_the_newest

NAMES = ("onnxruntime", "openvino:onnx", "opencv")
TARGETS = {name: BUILT_IN[name] for name in NAMES}


@dataclass
class Desk:
    """Stands for a Bench: hands out what targets give when they are asked again."""

    blobs: BlobStore
    then: Sequence[Array]

    @property
    def pool(self) -> Desk:
        return self

    def run(self, specimen: Specimen, names: Sequence[str]) -> dict[str, Run]:
        assert not any(np.isnan(array).any() for array in specimen.inputs)
        return {
            name: Run(name, Outcome.OK, Ran(outputs=Outputs((y,), (y.dtype.name,))))
            for name, y in zip(names, self.then, strict=True)
        }

    def judged(self, outputs: Any, failures: Any, rounding: Any, specimen: Specimen) -> Observation:
        return observed(specimen.inputs, outputs, failures, rounding, TARGETS, specimen.last.kind)


def specimen(
    kind: str, *read: Any, opset: int = 17, wrote: tuple[int, ...] = (0,), **config: Any
) -> Specimen:
    names = [f"x{place}" for place, _ in enumerate(read)]
    layer = Layer("y", kind, config, [ref(name) for name in names], batch=(None,))
    layer = with_origin(layer, Origin({"": opset}, outputs=wrote))
    items = tuple(
        Input(name, x.shape, x.dtype.name, None) for name, x in zip(names, read, strict=True)
    )
    return Specimen(Model("m", items, (layer,), (Ref("y"),), "onnx"), read)


def is_open(folder: Path, one: Specimen, *found: Any, then: Sequence[Any] = ()) -> bool:
    """Whether what three targets give is listed; `then`: what they give where nothing is NaN."""
    outputs = {n: Outputs((y,), (y.dtype.name,)) for n, y in zip(NAMES, found, strict=True)}
    rounding = layer_rounding(outputs.values(), 1, NOISE_FACTOR)
    seen = observed(one.inputs, outputs, {}, rounding, TARGETS, one.last.kind)
    assert seen.kind is not None
    asked = Inquiry(cast(Bench, Desk(BlobStore(folder), then)), one, seen)
    return listed(asked) is not None


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def ints(*numbers: int, dtype: str = "int32") -> Any:
    return np.array(numbers, dtype)


ONE = [floats(1.0)] * 3
PARTED = [floats(1.0), floats(1.0), floats(2.0)]
NAN = floats(np.nan, 0.0)
NANS = [floats(np.nan), floats(np.nan), floats(0.0)]


@pytest.mark.parametrize(
    ("one", "then", "open_"),
    [
        (specimen("ReduceMax", NAN), ONE, True),
        (specimen("ReduceMax", NAN), PARTED, False),  # without NaN they differ too
        (specimen("ReduceMax", floats(1.0, 0.0)), ONE, False),  # no NaN is read
        (specimen("ReduceSum", NAN), ONE, False),  # a sum with NaN is NaN
        (specimen("Relu", NAN), ONE, True),
        (specimen("HardSigmoid", NAN), ONE, True),
        (specimen("HardSwish", NAN), ONE, False),  # x times whatever is NaN
        (specimen("LeakyRelu", NAN), ONE, False),  # the body takes X where X is not less than 0
        (specimen("ThresholdedRelu", NAN), ONE, False),  # "y = 0 otherwise"
        (specimen("Shrink", NAN), ONE, False),  # "Otherwise, y = 0"
        (specimen("ScatterND", NAN, reduction="max"), ONE, True),
        (specimen("ScatterND", NAN, reduction="add"), ONE, False),
        (specimen("Unique", NAN), ONE, True),
    ],
    ids=lambda told: told.last.kind if isinstance(told, Specimen) else "",
)
def test_nan_is_open_where_it_is_compared_and_nowhere_else(
    one: Specimen, then: Sequence[Any], open_: bool, tmp_path: Path
) -> None:
    assert is_open(tmp_path, one, *NANS, then=then) is open_


def test_a_shape_is_open_where_nan_may_be_one_element_or_two(tmp_path: Path) -> None:
    found = floats(np.nan, np.nan), floats(np.nan, np.nan), floats(np.nan)
    assert is_open(tmp_path, specimen("Unique", NAN), *found, then=ONE)
    assert not is_open(tmp_path, specimen("TopK", NAN), *found, then=ONE)


MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("one", "found", "open_"),
    [
        (specimen("Mul", ints(MOST), ints(2)), (-2, -2, MOST), True),
        (specimen("Mul", ints(MOST), ints(1)), (MOST, MOST, -2), False),  # it fits
        (specimen("Add", ints(2**24), ints(1)), (2**24 + 1, 2**24 + 1, 2**24), False),
        (specimen("Add", ints(MOST), ints(1)), (-MOST - 1, -MOST - 1, MOST), True),
        (specimen("Abs", ints(-MOST - 1)), (-MOST - 1, -MOST - 1, MOST), True),
        (specimen("Abs", ints(-MOST)), (MOST, MOST, 0), False),
        (specimen("Max", ints(MOST), ints(2)), (MOST, MOST, 2), False),  # nothing is computed
        (specimen("BitShift", ints(2**30), ints(4), direction="LEFT"), (0, 0, MOST), False),
    ],
)  # fmt: skip
def test_only_integers_beyond_their_type_are_open(
    one: Specimen, found: tuple[int, ...], open_: bool, tmp_path: Path
) -> None:
    assert is_open(tmp_path, one, *map(ints, found)) is open_


def test_beside_an_integer_beyond_its_type_another_must_be_right(tmp_path: Path) -> None:
    one = specimen("Mul", ints(MOST, 3), ints(2, 2))
    assert is_open(tmp_path, one, ints(-2, 6), ints(-2, 6), ints(MOST, 6))
    assert not is_open(tmp_path, one, ints(-2, 6), ints(-2, 6), ints(MOST, 7))


@pytest.mark.parametrize(
    ("numbers", "found", "open_"),
    [
        ((1, 2), (1, 1, 2), True),  # 1.5
        ((1, 2), (1, 1, 3), False),
        ((2, 2), (2, 2, 1), False),  # 2 exactly
    ],
)
def test_a_mean_between_two_integers_is_open(
    numbers: tuple[int, ...], found: tuple[int, ...], open_: bool, tmp_path: Path
) -> None:
    one = specimen("ReduceMean", ints(*numbers), keepdims=1)
    assert is_open(tmp_path, one, *map(ints, found)) is open_


@pytest.mark.parametrize(
    ("mode", "found", "open_"), [("linear", (1, 1, 2), True), ("linear", (1, 1, 3), False),
                                 ("nearest", (1, 1, 2), False)]
)  # fmt: skip
def test_an_integer_between_pixels_is_open_and_a_copied_one_is_not(
    mode: str, found: tuple[int, ...], open_: bool, tmp_path: Path
) -> None:
    """The middle of 1 and 2; the roi is not read."""
    read = ints(1, 2, dtype="uint8"), floats(), floats(0.5)
    one = specimen("Resize", *read, mode=mode)
    told = [ints(n, dtype="uint8") for n in found]
    assert is_open(tmp_path, one, *told) is open_


def quantised_conv(zero: int) -> Specimen:
    """3 * 1 at half a step: 1.5, and the zero point."""
    x, w = ints(3, dtype="uint8").reshape(1, 1, 1), ints(1, dtype="uint8").reshape(1, 1, 1)
    scale, none = np.array(1.0, np.float32), np.array(0, np.uint8)
    step, zeros = np.array(2.0, np.float32), np.array(zero, np.uint8)
    return specimen("QLinearConv", x, scale, none, w, scale, none, step, zeros)


@pytest.mark.parametrize(
    ("zero", "last", "open_"), [(0, 2, True), (0, 3, False), (5, 7, True), (5, 8, False)]
)
def test_how_a_quantised_convolution_rounds_is_open(
    zero: int, last: int, open_: bool, tmp_path: Path
) -> None:
    right = ints(1 + zero, dtype="uint8").reshape(1, 1, 1)
    other = ints(last, dtype="uint8").reshape(1, 1, 1)
    assert is_open(tmp_path, quantised_conv(zero), right, right, other) is open_


@pytest.mark.parametrize("kind", ["QuantizeLinear", "QLinearMatMul", "DynamicQuantizeLinear"])
def test_how_numbers_are_quantised_is_decided(kind: str, tmp_path: Path) -> None:
    """ONNX says: to the nearest, halves to even."""
    one = specimen(kind, floats(1.5), floats(1.0), ints(0, dtype="int8"))
    found = [ints(n, dtype="int8") for n in (2, 2, 1)]
    assert not is_open(tmp_path, one, *found)


@pytest.mark.parametrize(
    ("kind", "config", "opset", "last", "open_"),
    [
        ("MaxPool", {"ceil_mode": 1}, 21, 1, True),
        ("MaxPool", {"ceil_mode": 1}, 22, 1, False),  # "are ignored"
        ("MaxPool", {"ceil_mode": 0}, 21, 1, False),
        ("MaxPool", {"ceil_mode": 1}, 21, 0, False),  # two places fewer
        ("AveragePool", {"ceil_mode": 1}, 19, 1, True),
        ("AveragePool", {"ceil_mode": 1}, 22, 1, False),
        ("LpPool", {"ceil_mode": 1}, 22, 1, True),
        ("LpPool", {"ceil_mode": 0}, 22, 1, False),
    ],
)
def test_the_window_that_would_begin_in_the_padding(
    kind: str, config: Any, opset: int, last: int, open_: bool, tmp_path: Path
) -> None:
    x = np.zeros((1, 1, 2), np.float32)
    one = specimen(kind, x, opset=opset, **config)
    assert is_open(tmp_path, one, x, x, x[:, :, :last]) is open_


@pytest.mark.parametrize(
    ("opset", "first", "open_"),
    [
        (9, floats(1.0, 1.0), True),
        (10, floats(1.0, 1.0), False),  # since then the mask is of bool, by its signature too
        (9, floats(0.0, 0.0), True),  # nor does the text say what it holds
        (9, np.array([True, False]), False),  # another mask of the same type
        (9, floats(1.0), False),  # another shape
    ],
)
def test_the_type_of_a_mask_is_open_in_old_opsets_and_the_mask_is_not(
    opset: int, first: Array, open_: bool, tmp_path: Path
) -> None:
    one = specimen("Dropout", floats(1.0, 2.0), opset=opset, wrote=(1,))
    true = np.ones(2, bool)
    assert is_open(tmp_path, one, first, true, true) is open_


@pytest.mark.parametrize(("couples", "open_"), [(1, True), (0, False)])
def test_how_gates_are_coupled_is_open(couples: int, open_: bool, tmp_path: Path) -> None:
    assert is_open(tmp_path, specimen("LSTM", NAN, input_forget=couples), *PARTED) is open_


@dataclass
class Asked:
    """Stands for a Bench whose workers are asked what ONNX' checker says."""

    pool: Here


@pytest.mark.parametrize(
    ("repeats", "outcome", "row"),
    [
        ([1, 1], Outcome.ERROR, "fails"),
        ([1], Outcome.ERROR, "illegal"),
        ([1], Outcome.CRASH, "fails"),  # no model may kill a process
        ([1], Outcome.HANG, "fails"),
    ],
)
def test_who_refuses_what_onnx_own_checker_refuses_is_not_accused(
    repeats: list[int], outcome: Outcome, row: str, tmp_path: Path
) -> None:
    """Tile wants as many repeats as there are dimensions."""
    here = Here(tmp_path)
    told = ints(*repeats, dtype="int64")
    weight = Weight("w", here.blobs.put(told), told.shape)
    one = specimen("Tile", np.ones((1, 2), np.float32))
    layer = replace(one.last, args=[*one.last.args, {WEIGHT: 0}], weights=(weight,))
    one = one.with_layer(layer)
    outputs = {n: Outputs(one.inputs, ("float32",)) for n in (NAME, "opencv")}
    failures = {"onnxruntime": Run("onnxruntime", outcome, {"error": "Fail"}, message="no")}
    rounding = layer_rounding(outputs.values(), 1, NOISE_FACTOR)
    targets = {**TARGETS, NAME: BUILT_IN[NAME]}
    seen = observed(one.inputs, outputs, failures, rounding, targets, "Tile")
    verdict = decide(cast(Bench, Asked(here)), one, seen)
    assert verdict.row == row
    assert ("Repeats" in verdict.reason) == (row == "illegal")


# What needs no entry: the text's formula gives no number there, and a number beside it.


def no_number(one: Specimen) -> Any:
    states = [State(x, batch=None) for x in one.inputs]
    found = reference(one.last, [], states)
    return None if found is None else np.isnan(found[0]).tolist()


def test_where_a_formula_divides_by_zero_there_is_no_number() -> None:
    theta, alone = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32), ints(1, 1, 1, 1, dtype="int64")
    pair = ints(1, 1, 2, 2, dtype="int64")
    for aligned, size, is_nan in ((1, alone, True), (0, alone, False), (1, pair, False)):
        grid = specimen("AffineGrid", theta, size, opset=20, align_corners=aligned)
        assert np.array(no_number(grid)).all() == is_nan
    wide, none, half = np.ones((1, 2), np.float32), floats(), floats(1.0, 0.5)
    for corners, is_nan in (("align_corners", True), ("half_pixel", False)):
        one = specimen(
            "Resize", wide, none, half, mode="linear", coordinate_transformation_mode=corners
        )
        assert no_number(one) == [[is_nan]]
    assert no_number(specimen("Celu", floats(-1.0, 1.0), alpha=0.0)) == [False, True]
    assert no_number(specimen("Elu", floats(-1.0, 1.0), alpha=0.0)) == [False, False]
    flat, steep = np.ones((1, 1, 1, 2), np.float32), np.array([[[[1, 3]]]], np.float32)
    assert no_number(specimen("MeanVarianceNormalization", flat)) == [[[[True, True]]]]
    assert no_number(specimen("MeanVarianceNormalization", steep)) == [[[[False, False]]]]
    # Here text and body contradict each other by a thousandth.
    slight = np.array([[[[0.0, 1e-6]]]], np.float32)
    assert no_number(specimen("MeanVarianceNormalization", slight)) is None


def text_of(operator: str, before: int | None) -> str:
    version = before - 1 if before else onnx.defs.onnx_opset_version()
    schema = onnx.defs.get_schema(operator, version)
    told = [schema.doc, *(a.description for a in schema.attributes.values())]
    return " ".join(" ".join(told).split())


@of_the_newest
@pytest.mark.parametrize(
    ("operator", "entry"),
    [(operator, entry) for entry in differences_of("onnx") for operator in entry.layers],
    ids=lambda told: told if isinstance(told, str) else "",
)
def test_the_sentence_that_an_entry_rests_on_is_onnx_own(operator: str, entry: Difference) -> None:
    assert entry.says[operator] in text_of(operator, entry.before)
    assert entry.says[operator] in entry.text(operator)


def test_an_attribute_is_not_made_smaller_than_is_legal() -> None:
    one = specimen("LRN", np.zeros((1, 1, 1), np.float32), size=4)
    tried = {s.last.config["size"] for s in smaller_attributes(one, None)}  # type: ignore[arg-type]
    assert tried == {1, 2}
    assert 0 in illegal("LRN", "size", 4)


def test_what_a_number_without_a_dimension_has_that_is_not_zero() -> None:
    one = specimen("NonZero", np.array(3.0, np.float32))
    found = reference(one.last, [], [one_state(one)])
    assert found is not None
    assert found[0].shape == (0, 1)
    many = specimen("NonZero", floats(0.0, 3.0))
    assert np.array_equal(reference(many.last, [], [one_state(many)])[0], [[1]])  # type: ignore[index]


def one_state(one: Specimen) -> Any:
    return State.fed(one.inputs[0], one.model.inputs[0])


def test_a_bound_that_is_left_out_is_the_largest_number_of_the_type() -> None:
    """ONNX says so of Clip, and in float64 nobody knows which type that was."""
    one = specimen("Clip", floats(np.inf))
    assert reference(one.last, [], [one_state(one)]) is None
    finite = specimen("Clip", floats(2.0))
    assert np.array_equal(reference(finite.last, [], [one_state(finite)])[0], [2.0])  # type: ignore[index]
