"""What ONNX' text leaves open is no bug, and only that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from outvote.core.model import Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.specimen import Specimen
from outvote.dialects.onnx.nouns.attributes import illegal
from outvote.dialects.onnx.nouns.node import Origin, ref, with_origin
from outvote.dialects.onnx.reductions import smaller_attributes
from outvote.dialects.onnx.reference import reference
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.judge.observation import Observation, observed
from outvote.judge.rounding import layer_rounding
from outvote.judge.tolerance import NOISE_FACTOR
from outvote.triage.differences import listed

NAMES = ("onnxruntime", "openvino:onnx", "opencv")
TARGETS = {name: BUILT_IN[name] for name in NAMES}


def specimen(kind: str, x: Any, **config: Any) -> Specimen:
    layer = with_origin(Layer("y", kind, config, [ref("x")], batch=(None,)), Origin({"": 17}))
    item = Input("x", x.shape, x.dtype.name, None)
    return Specimen(Model("m", (item,), (layer,), (Ref("y"),), "onnx"), (x,))


def seen(one: Specimen, *found: Any) -> Observation:
    outputs = {n: Outputs((y,), (y.dtype.name,)) for n, y in zip(NAMES, found, strict=True)}
    rounding = layer_rounding(outputs.values(), 1, NOISE_FACTOR)
    return observed(one.inputs, outputs, {}, rounding, TARGETS, one.last.kind)


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("kind", "read", "is_open"),
    [("ReduceMax", np.nan, True), ("ReduceMax", 1.0, False), ("ReduceSum", np.nan, False)],
)
def test_nan_is_open_where_numbers_are_put_in_order(kind: str, read: float, is_open: bool) -> None:
    one = specimen(kind, floats(read, 0.0))
    apart = seen(one, floats(np.nan), floats(np.nan), floats(0.0))
    assert (listed(one, apart) is not None) is is_open


@pytest.mark.parametrize(("kind", "last", "is_open"), [
    ("QuantizeLinear", 4, True), ("QuantizeLinear", 5, False), ("Cast", 4, False),
])  # fmt: skip
def test_the_last_unit_is_open_where_numbers_are_quantised(
    kind: str, last: int, is_open: bool
) -> None:
    one = specimen(kind, floats(1.5))
    three, other = np.array([3], np.int8), np.array([last], np.int8)
    assert (listed(one, seen(one, three, three, other)) is not None) is is_open


@pytest.mark.parametrize(
    ("kind", "most", "is_open"),
    [("Mul", 2**31 - 1, True), ("Mul", 9, False), ("Max", 2**31, False)],
)
def test_integers_beyond_their_type_are_open(kind: str, most: int, is_open: bool) -> None:
    one = specimen(kind, np.array([most], np.int64 if most > 2**31 - 1 else np.int32))
    three, far = np.array([3], np.int32), np.array([30], np.int32)
    assert (listed(one, seen(one, three, three, far)) is not None) is is_open


def test_numbers_with_a_fraction_have_no_last_unit() -> None:
    one = specimen("HannWindow", floats(1.0))
    assert listed(one, seen(one, floats(0.5), floats(0.5), floats(0.6))) is None


def test_windows_that_begin_in_the_padding_are_open_with_ceil_mode_alone() -> None:
    x = np.zeros((1, 1, 2), np.float32)
    for ceil_mode, is_open in ((1, True), (0, False)):
        one = specimen("MaxPool", x, ceil_mode=ceil_mode)
        apart = seen(one, x, x, x[:, :, :1])
        assert (listed(one, apart) is not None) is is_open


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
    from outvote.core.states import State

    return State.fed(one.inputs[0], one.model.inputs[0])


def test_a_bound_that_is_left_out_is_the_largest_number_of_the_type() -> None:
    """ONNX says so of Clip, and in float64 nobody knows which type that was."""
    one = specimen("Clip", floats(np.inf))
    assert reference(one.last, [], [one_state(one)]) is None
    finite = specimen("Clip", floats(2.0))
    assert np.array_equal(reference(finite.last, [], [one_state(finite)])[0], [2.0])  # type: ignore[index]
