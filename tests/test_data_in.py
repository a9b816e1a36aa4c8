"""Data for a model: what fits goes in as it is, what does not is refused by value and remedy."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from outvote.core.arrays import Array
from outvote.core.case import Data, balanced_batch, fit, load_data, random_data
from outvote.core.errors import UsageError
from outvote.core.model import REF, Input, Layer, Model, Ref

FEW = settings(max_examples=25)
WHOLE = ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]


def model_of(*inputs: Input, dialect: str = "keras", **config: int) -> Model:
    """A model that reads all these inputs."""
    layers = tuple(
        Layer(f"read_{item.name}", "Any", config, [{REF: [item.name, 0]}]) for item in inputs
    )
    outputs = tuple(Ref(layer.name) for layer in layers) or (Ref("constant"),)
    constant = () if layers else (Layer("constant", "Any", {}),)
    return Model("m", inputs, (*layers, *constant), outputs, dialect)


def fitted(array: Array, dtype: str, allow_nan: bool = False) -> Array:
    model = model_of(Input("x", (None, *array.shape[1:]), dtype))
    return fit({"x": array}, model, "the data", allow_nan).inputs[0]


# No number becomes another one.


@FEW
@given(hnp.arrays(st.sampled_from([*WHOLE, "float64"]), (2, 3)), st.sampled_from(WHOLE))
def test_whole_numbers_arrive_as_they_are_or_not_at_all(array: Array, dtype: str) -> None:
    low, high = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if all(
        bool(np.isfinite(v)) and float(v).is_integer() and low <= int(v) <= high
        for v in array.reshape(-1).tolist()
    ):
        found = fitted(array, dtype)
        assert found.dtype == dtype
        assert [int(v) for v in found.flat] == [int(v) for v in array.flat]
    else:
        with pytest.raises(UsageError, match=r"^x (holds|has dtype) "):
            fitted(array, dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "says"),
    [
        (2**31, "int32", "x holds 2147483648 (instance 1), but the model's input 'x' takes int32"),
        (-1, "uint8", "x holds -1 (instance 1), but the model's input 'x' takes uint8, which"),
        (2, "bool", "x holds 2 (instance 1)"),
        (2.0**63, "int64", "takes int64, which cannot hold it; mend the data"),
        (1e5, "float16", "x holds 100000.0 (instance 1), but the model's input 'x' takes float16"),
        (1e39, "float32", "x holds 1e+39 (instance 1)"),
        (1e39, "bfloat16", "takes bfloat16, which cannot hold it"),
        (0.5, "int32", "x has dtype float64 with fractions, but the model's input 'x' takes int32"),
        (np.nan, "int32", "NaN or infinity (first at instance 1), but the model takes int32; cle"),
        (np.inf, "uint8", "NaN or infinity (first at instance 1), but the model takes uint8"),
        (np.nan, "float32", "(first at instance 1); clean the data, or add --allow-nan if that"),
    ],
)
def test_a_number_that_the_input_cannot_hold_is_named(value: float, dtype: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        fitted(np.array([[0], [value]]), dtype)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**31 - 1, "int32"),
        (-(2**31), "int32"),
        (255, "uint8"),
        (1, "bool"),
        (2**63 - 1, "int64"),
        (2**64 - 1, "uint64"),
        (65504.0, "float16"),
        (2.0**127, "float32"),
    ],
)
def test_the_last_number_that_it_holds_is_taken(value: float, dtype: str) -> None:
    found = fitted(np.array([[value]]), dtype)
    assert found.dtype == dtype
    assert found.item() == value


def test_infinities_that_are_allowed_stay_and_do_not_cover_one_that_is_made() -> None:
    given_ones = np.array([[np.inf, -np.inf, np.nan]])
    np.testing.assert_array_equal(fitted(given_ones, "float16", allow_nan=True), given_ones)
    with pytest.raises(UsageError, match=r"x holds 70000\.0 \(instance 0\)"):
        fitted(np.array([[np.inf, 7e4]]), "float16", allow_nan=True)
    with pytest.raises(UsageError, match="NaN or infinity"):
        fitted(given_ones, "int32", allow_nan=True)


def test_the_instance_that_is_named_lies_along_the_batch_axis() -> None:
    array = np.zeros((2, 3), np.int64)
    array[0, 2] = 300
    for batch, instance in ((0, 0), (1, 2), (None, 0)):
        model = model_of(Input("x", (2, 3), "uint8", batch))
        with pytest.raises(UsageError, match=rf"holds 300 \(instance {instance}\)"):
            fit({"x": array}, model, "the data", False)


def test_bfloat16_is_held_as_float32_and_a_number_without_axes_stays_one() -> None:
    assert fitted(np.ones((1, 2)), "bfloat16").dtype == np.float32
    model = model_of(Input("x", (), "float32", None))
    assert fit({"x": np.array(2.0)}, model, "the data", False).inputs[0].shape == ()


# Names, shapes and counts.


@pytest.mark.parametrize("names", [("x0", "x1"), ("left", "right")])
def test_several_inputs_go_by_number_or_by_their_own_names(names: tuple[str, str]) -> None:
    model = model_of(Input("left", (None, 2), "float32"), Input("right", (None, 3), "float32"))
    arrays = {names[1]: np.ones((4, 3)), names[0]: np.zeros((4, 2)), "more": np.ones(1)}
    data = fit(arrays, model, "the data", False)
    assert [array.shape for array in data.inputs] == [(4, 2), (4, 3)]
    assert (data.count, data.truth, data.source) == (4, None, "the data")


def test_numbers_go_before_names() -> None:
    """`x` is what the guide says; a file may hold more under the model's own names."""
    model = model_of(Input("image", (None, 1), "float32"))
    data = fit({"image": np.zeros((2, 1)), "x": np.ones((2, 1))}, model, "the data", False)
    assert data.inputs[0].sum() == 2


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({}, "the model has 2 inputs, so the data must hold x0, x1; it holds nothing"),
        ({"x": 0, "x0": 0}, "must hold x0, x1; it holds x, x0"),
        ({"x0": (2, 2), "x1": (3, 3)}, "x0 has 2 instances but x1 has 3"),
        ({"x0": (0, 2), "x1": (0, 3)}, "holds no inputs: x0 has shape (0, 2); add some"),
        ({"x0": (2, 3), "x1": (2, 3)}, "the model's input 'a' takes (any, 2); reshape the data"),
        ({"x0": (2, 2, 1), "x1": (2, 3)}, "x0 has shape (2, 2, 1)"),
    ],
)
def test_what_does_not_fit_together(arrays: dict[str, tuple[int, ...]], says: str) -> None:
    model = model_of(Input("a", (None, 2), "float32"), Input("b", (None, 3), "float32"))
    with pytest.raises(UsageError) as refused:
        fit({name: np.zeros(shape) for name, shape in arrays.items()}, model, "the data", False)
    assert says in str(refused.value)


def test_an_empty_batch_is_taken_where_it_is_asked_for_and_has_no_truth() -> None:
    model = model_of(Input("x", (None, 2), "float32"))
    arrays = {"x": np.zeros((0, 2)), "y": np.zeros(5)}
    data = fit(arrays, model, "the data", False, allow_empty=True)
    assert (data.count, data.truth) == (0, None)
    assert [array.shape for array in data.take_one([])] == [(0, 2)]
    with pytest.raises(UsageError, match="or --allow-empty if that is what you test"):
        fit(arrays, model, "the data", False, allow_empty=False)


def test_a_model_without_inputs_needs_no_data() -> None:
    data = fit({"x": np.zeros(3)}, model_of(), "the data", False)
    assert (data.inputs, data.count) == ((), 1)


@pytest.mark.parametrize(
    ("truth", "says"),
    [
        (np.array(1), "y has shape (), but there are 2 inputs"),
        (np.zeros((3, 2)), "y has shape (3, 2), but there are 2 inputs"),
        (np.array([1j, 0]), "y has dtype complex128; it holds labels (integers) or values"),
        (np.array([np.inf, 0]), "y holds NaN or infinity; clean the data"),
    ],
)
def test_truth_that_does_not_fit(truth: Array, says: str) -> None:
    model = model_of(Input("x", (None, 2), "float32"))
    with pytest.raises(UsageError) as refused:
        fit({"x": np.zeros((2, 2)), "y": truth}, model, "the data", False)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("dtype", "remedy"),
    [
        ("complex64", "check the model without the part that reads it"),
        ("float8_e4m3fn", "check the model without the part that reads it"),
        ("string", "check the part behind its TextVectorization or StringLookup"),
    ],
)
def test_a_type_that_does_not_travel_is_told_before_anything_is_read(
    dtype: str, remedy: str
) -> None:
    model = model_of(Input("odd", (None, 2), dtype))
    with pytest.raises(UsageError) as fed:
        fit({}, model, "the data", False)
    with pytest.raises(UsageError) as drawn:
        random_data(model, 2, 0)
    assert str(fed.value) == str(drawn.value)
    assert f"input 'odd' takes {dtype}, which cannot be given to targets" in str(fed.value)
    assert remedy in str(fed.value)


def test_instances_are_taken_along_each_inputs_own_axis() -> None:
    a, shared, b = np.arange(6).reshape(3, 2), np.arange(4), np.arange(6).reshape(2, 3)
    data = Data((a, shared, b), None, "here", (0, None, 1))
    first, same, second = data.take([2, 0])
    np.testing.assert_array_equal(first, a[[2, 0]])
    assert same is shared
    np.testing.assert_array_equal(second, b[:, [2, 0]])
    assert data.take_one([1, 2])[0].tolist() == [[2, 3]]
    assert data.take_one([])[0].tolist() == [[0, 1]]


# Random inputs, batches, files.


def test_random_inputs_fit_the_model_and_come_of_the_seed_alone() -> None:
    model = model_of(
        Input("a", (None, 2, None), "float16"),
        Input("ids", (None, 5), "uint8"),
        Input("flag", (3, None), "bool", 1),
        Input("shared", (4,), "float32", None),
        input_dim=7,
    )
    drawn, again, other = (random_data(model, 6, seed) for seed in (3, 3, 4))
    shapes = [array.shape for array in drawn.inputs]
    assert shapes == [(6, 2, 16), (6, 5), (3, 6), (4,)]
    assert [array.dtype.name for array in drawn.inputs] == ["float16", "uint8", "bool", "float32"]
    assert drawn.inputs[1].max() < 7  # what the embedding behind it can look up
    for one, same, another in zip(drawn.inputs, again.inputs, other.inputs, strict=True):
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, another)
    arrays = {f"x{n}": array for n, array in enumerate(drawn.inputs)}
    assert fit(arrays, model, "the data", False).count == drawn.count == 6


def test_more_random_numbers_than_memory_deserves_are_refused() -> None:
    model = model_of(Input("x", (None, 1024, None), "float32"))
    assert random_data(model, 2, 0).inputs[0].size == 2 * 1024 * 16
    with pytest.raises(UsageError) as refused:
        random_data(model, 2049, 0)
    assert "takes (any, 1024, any) would be 33,570,816 numbers" in str(refused.value)
    assert "more than 33,554,432; ask for fewer with --count, or give --data" in str(refused.value)


@FEW
@given(st.integers(0, 500), st.integers(1, 64))
def test_a_batch_is_even_where_that_does_not_halve_it(count: int, limit: int) -> None:
    size = balanced_batch(count, limit)
    if count <= limit:
        assert size == count
        return
    assert limit // 2 <= size <= limit
    larger = [n for n in range(size + 1, limit + 1) if count % n == 0]
    assert not larger
    assert count % size == 0 or not any(count % n == 0 for n in range(max(1, limit // 2), limit))


def test_a_data_file_that_lies_about_its_arrays_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "lie.npz"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"
    text = header.ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text)
    with pytest.raises(UsageError, match=r"announces 4,000,000,000,000 bytes and holds 0"):
        load_data(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x09\x00" + bytes(100))
    with pytest.raises(UsageError, match=r"'x\.npy' is of format \(9, 0\)"):
        load_data(path)


def test_a_data_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    arrays = {"x": np.arange(6.0).reshape(2, 3), "y": np.array([1, 0]), "t": np.array(["a", "bc"])}
    np.savez(tmp_path / "d.npz", **arrays)  # type: ignore[arg-type]
    found = load_data(tmp_path / "d.npz")
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in arrays.items()
    }
    with pytest.raises(UsageError, match=r"the data file .*none\.npz does not exist"):
        load_data(tmp_path / "none.npz")
