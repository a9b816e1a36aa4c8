"""Formulas of the reference, layer by layer, against the same written number by number."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outvote.core.states import State
from outvote.dialects.keras.reference.activations import FUNCTIONS
from reference_calls import SEEDS, computed, layer_of, listed, numbers, outputs_of_call

REALS = st.floats(-30, 30).filter(lambda value: value == 0 or abs(value) > 1e-6)


# Activations


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softplus(x: float) -> float:
    return math.log1p(math.exp(-abs(x))) + max(x, 0)


ONE_BY_ONE: dict[str, Callable[[float], float]] = {
    "celu": lambda x: x if x > 0 else math.exp(x) - 1,
    "elu": lambda x: x if x > 0 else math.exp(x) - 1,
    "exponential": math.exp,
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "hard_shrink": lambda x: x if abs(x) > 0.5 else 0,
    "hard_sigmoid": lambda x: min(max(x / 6 + 0.5, 0), 1),
    "hard_silu": lambda x: x * min(max(x / 6 + 0.5, 0), 1),
    "hard_swish": lambda x: x * min(max(x / 6 + 0.5, 0), 1),
    "hard_tanh": lambda x: min(max(x, -1), 1),
    "leaky_relu": lambda x: x if x > 0 else 0.2 * x,
    "linear": lambda x: x,
    "log_sigmoid": lambda x: -softplus(-x),
    "mish": lambda x: x * math.tanh(softplus(x)),
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: min(max(x, 0), 6),
    "selu": lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "soft_shrink": lambda x: x - 0.5 if x > 0.5 else x + 0.5 if x < -0.5 else 0,
    "softplus": softplus,
    "softsign": lambda x: x / (1 + abs(x)),
    "sparse_plus": lambda x: 0 if x <= -1 else x if x >= 1 else (x + 1) ** 2 / 4,
    "sparse_sigmoid": lambda x: 0 if x <= -1 else 1 if x >= 1 else (x + 1) / 2,
    "squareplus": lambda x: (x + math.sqrt(x * x + 4)) / 2,
    "swish": lambda x: x * sigmoid(x),
    "tanh": math.tanh,
    "tanh_shrink": lambda x: x - math.tanh(x),
}
OF_A_ROW = {"glu", "log_softmax", "softmax", "sparsemax"}


def test_every_activation_of_the_reference_is_tested_here() -> None:
    assert set(FUNCTIONS) == set(ONE_BY_ONE) | OF_A_ROW


# Every kink (0, ±½, ±1, ±3, 6) with its neighbours, and numbers between and beyond them.
KINKS = np.array([-3, -1, -0.5, 0, 0.5, 1, 3, 6])
GRID = np.concatenate([np.linspace(-30, 30, 997), *(KINKS + d for d in (-1e-6, 0, 1e-6))])


@pytest.mark.parametrize("name", sorted(ONE_BY_ONE))
def test_an_activation_is_its_formula_on_every_number(name: str) -> None:
    found = computed("Activation", {"activation": name}, [], GRID[np.newaxis])
    expected = [ONE_BY_ONE[name](value) for value in GRID.tolist()]
    np.testing.assert_allclose(found[0], expected, rtol=1e-9, atol=1e-12)


@given(st.lists(REALS, min_size=2, max_size=6))
def test_softmax_shares_by_powers_and_its_logarithm_agrees(x: list[float]) -> None:
    powers = [math.exp(value - max(x)) for value in x]
    found = computed("Activation", {"activation": "softmax"}, [], np.array([x]))
    np.testing.assert_allclose(found[0], [p / sum(powers) for p in powers], rtol=1e-12)
    logs = computed("Activation", {"activation": "log_softmax"}, [], np.array([x]))
    np.testing.assert_allclose(np.exp(logs), found, rtol=1e-9)


def test_activations_far_out_neither_overflow_nor_lose_the_sign() -> None:
    far = np.array([[-1e3, 1e3, -745.0, 709.0]])
    for name in sorted(set(ONE_BY_ONE) - {"exponential"}):
        assert np.isfinite(computed("Activation", {"activation": name}, [], far)).all(), name
    assert computed("Activation", {"activation": "softplus"}, [], far)[0, 1] == 1e3


@given(st.lists(REALS, min_size=4, max_size=4), st.integers(0, 3), st.floats(0.1, 1), REALS)
def test_relu_with_slope_threshold_and_ceiling(
    x: list[float], most: int, slope: float, threshold: float
) -> None:
    config = {"negative_slope": slope, "threshold": threshold, "max_value": float(most)}
    found = computed("ReLU", config, [], np.array([x]))
    for value, output in zip(x, found[0], strict=True):
        plain = value if value >= threshold else slope * (value - threshold)
        assert output == pytest.approx(min(plain, most))


@given(SEEDS, st.floats(0.1, 3))
def test_layers_with_an_activation_of_their_own(seed: int, alpha: float) -> None:
    x, slopes = numbers(seed, 2, 3, 4), numbers(seed + 1, 1, 4)
    elu = computed("ELU", {"alpha": alpha}, [], x)
    leaky = computed("LeakyReLU", {"negative_slope": alpha}, [], x)
    learned = computed("PReLU", {"shared_axes": [1]}, [slopes], x)
    for place in np.ndindex(x.shape):
        value = x[place]
        assert elu[place] == pytest.approx(value if value > 0 else alpha * math.expm1(value))
        assert leaky[place] == pytest.approx(value if value > 0 else alpha * value)
        slope = slopes[0, place[-1]]
        assert learned[place] == pytest.approx(value if value > 0 else slope * value)


@given(SEEDS, st.sampled_from([-1, 1, 2, [1, 2]]))
def test_softmax_over_any_axes_sums_to_one(seed: int, axis: Any) -> None:
    x = numbers(seed, 2, 3, 4)
    found = computed("Softmax", {"axis": axis}, [], x)
    axes = tuple(axis) if isinstance(axis, list) else axis
    np.testing.assert_allclose(found.sum(axis=axes), 1.0)
    np.testing.assert_allclose(
        np.log(found) - x, np.broadcast_to((np.log(found) - x).max(axes, keepdims=True), x.shape)
    )


@given(SEEDS)
def test_masked_places_of_a_softmax_get_nothing_and_the_rest_share_all(seed: int) -> None:
    x, mask = numbers(seed, 3, 5), np.random.default_rng(seed).random((3, 5)) < 0.6
    outputs = outputs_of_call(layer_of("Softmax", {}), [], State(x, mask))
    assert outputs is not None
    for row in range(3):
        kept = np.exp(x[row]) * mask[row]
        expected = kept / kept.sum() if mask[row].any() else np.zeros(5)
        np.testing.assert_allclose(outputs[0][row], expected, atol=1e-12)


# Matrices and tables


@given(SEEDS, st.booleans(), st.sampled_from([None, "relu", "tanh"]))
def test_dense_is_a_sum_over_the_last_axis(seed: int, bias: bool, name: str | None) -> None:
    x, kernel, added = numbers(seed, 2, 3, 4), numbers(seed + 1, 4, 5), numbers(seed + 2, 5)
    weights = [kernel, added] if bias else [kernel]
    config = {"units": 5, "use_bias": bias, "activation": name}
    found = computed("Dense", config, weights, x)
    for b, t, unit in np.ndindex(2, 3, 5):
        total = sum(x[b, t, i] * kernel[i, unit] for i in range(4)) + (added[unit] if bias else 0)
        expected = {None: total, "relu": max(total, 0), "tanh": math.tanh(total)}[name]
        assert found[b, t, unit] == pytest.approx(expected)


def test_einsum_dense_follows_its_equation() -> None:
    x, kernel, bias = numbers(0, 2, 3, 4), numbers(1, 4, 2, 5), numbers(2, 2, 5)
    config = {"equation": "btd,dhk->bthk", "bias_axes": "hk", "output_shape": [None, 2, 5]}
    found = computed("EinsumDense", config, [kernel, bias], x)
    for b, t, h, k in np.ndindex(2, 3, 2, 5):
        total = sum(x[b, t, d] * kernel[d, h, k] for d in range(4))
        assert found[b, t, h, k] == pytest.approx(total + bias[h, k])


@pytest.mark.parametrize("kind", ["Embedding", "ReversibleEmbedding"])
def test_an_embedding_gives_rows_and_refuses_what_is_no_row(kind: str) -> None:
    table = numbers(0, 5, 3)
    ids = np.array([[0, 4], [2, 2]], "int32")
    np.testing.assert_array_equal(computed(kind, {}, [table], ids), table[[[0, 4], [2, 2]]])
    for wrong in ([[0, 5]], [[-1, 0]], [[0.5, 1.0]]):
        assert outputs_of_call(layer_of(kind, {}), [table], np.array(wrong)) is None


# Several tensors


@given(st.integers(2, 4), SEEDS)
def test_merging_layers_go_number_by_number(count: int, seed: int) -> None:
    tensors = [numbers(seed + i, 2, 3) for i in range(count)]
    stack = np.stack(tensors)
    expected = {
        "Add": stack.sum(axis=0),
        "Average": stack.sum(axis=0) / count,
        "Maximum": stack.max(axis=0),
        "Minimum": stack.min(axis=0),
        "Multiply": stack.prod(axis=0),
        "Concatenate": np.hstack(tensors),
    }
    for kind, right in expected.items():
        outputs = outputs_of_call(layer_of(kind, {}, listed(count)), [], *tensors)
        assert outputs is not None
        np.testing.assert_allclose(outputs[0], right, atol=1e-12, err_msg=kind)
    minus = outputs_of_call(layer_of("Subtract", {}, listed(count)), [], *tensors)
    if count == 2:
        assert minus is not None
        np.testing.assert_array_equal(minus[0], tensors[0] - tensors[1])
    else:
        assert minus is None


@given(SEEDS, st.booleans(), st.sampled_from([(1, 2), (2, 1), (2, 2)]))
def test_dot_sums_over_one_axis_of_each(seed: int, unit: bool, axes: tuple[int, int]) -> None:
    sizes = ({1: (3, 4), 2: (4, 3)}[axes[0]], {1: (3, 5), 2: (5, 3)}[axes[1]])
    x, y = (numbers(seed + i, 2, *size) for i, size in enumerate(sizes))
    layer = layer_of("Dot", {"axes": list(axes), "normalize": unit}, listed(2))
    outputs = outputs_of_call(layer, [], x, y)
    assert outputs is not None
    for sample in range(2):
        rows = x[sample].T if axes[0] == 1 else x[sample]
        columns = y[sample].T if axes[1] == 1 else y[sample]
        for i, j in itertools.product(range(4), range(5)):
            total = sum(a * b for a, b in zip(rows[i], columns[j], strict=True))
            if unit:
                total /= math.hypot(*rows[i]) * math.hypot(*columns[j])
            assert outputs[0][sample, i, j] == pytest.approx(total)


def test_a_dot_of_vectors_is_one_number_and_zero_has_no_direction() -> None:
    x, y = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])
    plain = outputs_of_call(layer_of("Dot", {"axes": 1}, listed(2)), [], x, y)
    assert plain is not None
    assert plain[0].tolist() == [[11.0], [6.0]]
    unit = layer_of("Dot", {"axes": 1, "normalize": True}, listed(2))
    assert outputs_of_call(unit, [], np.zeros((2, 2)), y) is None


@pytest.mark.parametrize("kind", ["Add", "Multiply", "Maximum", "Average", "Concatenate"])
def test_ranks_that_differ_truth_values_and_a_tensor_alone_are_not_covered(kind: str) -> None:
    pair = layer_of(kind, {}, listed(2))
    assert outputs_of_call(pair, [], np.ones((2, 3)), np.ones((2, 3, 3))) is None
    assert outputs_of_call(pair, [], np.ones((2, 3), bool), np.ones((2, 3), bool)) is None
    assert outputs_of_call(layer_of(kind, {}), [], np.ones((2, 3))) is None


def test_whole_numbers_stay_whole_where_all_are_of_one_type() -> None:
    a, b = np.array([[2**60 + 1]]), np.array([[1]])
    outputs = outputs_of_call(layer_of("Add", {}, listed(2)), [], a, b)
    assert outputs is not None
    assert outputs[0].tolist() == [[2**60 + 2]]  # float64 would lose the last digit


# Normalisation


@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([-1, 1]))
def test_batch_normalisation_at_inference(seed: int, scale: bool, center: bool, axis: int) -> None:
    x = numbers(seed, 2, 3, 3)
    gamma, beta, mean = (numbers(seed + i, 3) for i in (1, 2, 3))
    variance = np.abs(numbers(seed + 4, 3))
    weights = [w for w, there in ((gamma, scale), (beta, center)) if there] + [mean, variance]
    config = {"scale": scale, "center": center, "axis": axis, "epsilon": 0.01}
    found = computed("BatchNormalization", config, weights, x)
    for place in np.ndindex(x.shape):
        c = place[axis]
        y = (x[place] - mean[c]) / math.sqrt(variance[c] + 0.01)
        expected = y * (gamma[c] if scale else 1) + (beta[c] if center else 0)
        assert found[place] == pytest.approx(expected)


@given(SEEDS, st.sampled_from([-1, 1, [1, 2]]))
def test_layer_normalisation_gives_mean_zero_and_variance_one(seed: int, axis: Any) -> None:
    x = numbers(seed, 2, 3, 4)
    axes = tuple(axis) if isinstance(axis, list) else (axis,)
    shape = tuple(x.shape[a] for a in axes)
    config = {"axis": axis, "epsilon": 1e-9}
    found = computed("LayerNormalization", config, [np.ones(shape), np.zeros(shape)], x)
    np.testing.assert_allclose(found.mean(axis=axes), 0, atol=1e-9)
    np.testing.assert_allclose(found.var(axis=axes), 1, rtol=1e-5)


@given(SEEDS, st.sampled_from([1, 2, 4, -1]))
def test_group_normalisation_is_layer_normalisation_of_each_group(seed: int, groups: int) -> None:
    x = numbers(seed, 2, 3, 4)
    gamma, beta = numbers(seed + 1, 4), numbers(seed + 2, 4)
    found = computed("GroupNormalization", {"groups": groups, "epsilon": 1e-3}, [gamma, beta], x)
    count = 4 if groups == -1 else groups
    for sample, group in itertools.product(range(2), range(count)):
        own = slice(group * 4 // count, (group + 1) * 4 // count)
        part = x[sample, :, own]
        y = (part - part.mean()) / math.sqrt(part.var() + 1e-3)
        np.testing.assert_allclose(found[sample, :, own], y * gamma[own] + beta[own], atol=1e-9)


@given(SEEDS)
def test_rms_and_unit_normalisation_divide_by_lengths(seed: int) -> None:
    x, scale = numbers(seed, 3, 4), numbers(seed + 1, 4)
    rms = computed("RMSNormalization", {"epsilon": 1e-6}, [scale], x)
    unit = computed("UnitNormalization", {}, [], x)
    for row in range(3):
        size = math.sqrt(sum(v * v for v in x[row]) / 4 + 1e-6)
        np.testing.assert_allclose(rms[row], x[row] / size * scale, rtol=1e-9)
        np.testing.assert_allclose(unit[row], x[row] / math.hypot(*x[row]), rtol=1e-9)


def test_a_vector_of_zeros_stays_one_and_a_tiny_one_has_no_documented_direction() -> None:
    assert computed("UnitNormalization", {}, [], np.zeros((1, 3))).tolist() == [[0, 0, 0]]
    assert outputs_of_call(layer_of("UnitNormalization", {}), [], np.full((1, 3), 1e-9)) is None


@given(SEEDS, st.booleans())
def test_standard_numbers_and_back(seed: int, given_by_hand: bool) -> None:
    x, mean, variance = numbers(seed, 3, 2), numbers(seed + 1, 2), np.abs(numbers(seed + 2, 2)) + 1
    learned = [] if given_by_hand else [mean, variance, np.array(7)]
    stated = {"mean": mean.tolist(), "variance": variance.tolist()} if given_by_hand else {}
    there = computed("Normalization", {"axis": -1, **stated}, learned, x)
    np.testing.assert_allclose(there, (x - mean) / np.sqrt(variance), rtol=1e-9)
    back = computed("Normalization", {"axis": -1, "invert": True, **stated}, learned, there)
    np.testing.assert_allclose(back, x, atol=1e-9)


# Numbers that move


@given(SEEDS, st.integers(1, 3), st.data())
def test_cropping_undoes_padding_and_padding_is_zero(seed: int, rank: int, data: Any) -> None:
    x = numbers(seed, 2, *[2, 3, 2][:rank], 2)
    pairs = [[data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))] for _ in range(rank)]
    value: Any = pairs[0] if rank == 1 else pairs
    padded = computed(f"ZeroPadding{rank}D", {"padding": value}, [], x)
    assert padded.sum() == pytest.approx(x.sum())
    assert padded.shape[1:-1] == tuple(
        n + a + b for n, (a, b) in zip(x.shape[1:-1], pairs, strict=True)
    )
    np.testing.assert_array_equal(computed(f"Cropping{rank}D", {"cropping": value}, [], padded), x)


def test_cropping_that_leaves_nothing_is_not_covered() -> None:
    layer = layer_of("Cropping1D", {"cropping": [2, 2]})
    assert outputs_of_call(layer, [], np.ones((1, 4, 1))) is None


@given(SEEDS, st.permutations([1, 2, 3]))
def test_reshaping_keeps_every_number_in_its_order(seed: int, dims: list[int]) -> None:
    x = numbers(seed, 2, 2, 3, 4)
    moved = computed("Permute", {"dims": dims}, [], x)
    for place in np.ndindex(*moved.shape[1:]):
        source = [0, 0, 0]
        for axis, dim in enumerate(dims):
            source[dim - 1] = place[axis]
        assert moved[(0, *place)] == x[(0, *source)]
    flat = computed("Flatten", {}, [], x)
    assert flat[1].tolist() == list(x[1].flat)
    again = computed("Reshape", {"target_shape": [2, 3, 4]}, [], flat)
    np.testing.assert_array_equal(again, x)
    repeated = computed("RepeatVector", {"n": 3}, [], flat)
    assert all((repeated[:, i] == flat).all() for i in range(3))


@given(SEEDS, st.integers(1, 3), st.integers(1, 3))
def test_upsampling_by_the_nearest_repeats_and_pooling_takes_it_back(
    seed: int, rank: int, times: int
) -> None:
    x = numbers(seed, 1, *[2, 3, 2][:rank], 2)
    grown = computed(f"UpSampling{rank}D", {"size": times}, [], x)
    for place in np.ndindex(*grown.shape[1:-1]):
        source = tuple(p // times for p in place)
        assert (grown[(0, *place)] == x[(0, *source)]).all()
    back = computed(f"MaxPooling{rank}D", {"pool_size": times}, [], grown)
    np.testing.assert_array_equal(back, x)


@given(SEEDS, st.integers(2, 7), st.integers(2, 7))
def test_bilinear_resizing_keeps_planes_inside_and_never_leaves_the_range(
    seed: int, height: int, width: int
) -> None:
    slope = numbers(seed, 2)
    plane = np.add.outer(np.arange(5) * slope[0], np.arange(4) * slope[1])[None, :, :, None]
    config = {"height": height, "width": width, "interpolation": "bilinear"}
    found = computed("Resizing", config, [], plane)
    assert found.min() >= plane.min() - 1e-12
    assert found.max() <= plane.max() + 1e-12
    for i, j in np.ndindex(height, width):
        y, x = (i + 0.5) * 5 / height - 0.5, (j + 0.5) * 4 / width - 0.5
        if 0 <= y <= 4 and 0 <= x <= 3:  # outside the outermost centres the edge goes on
            assert found[0, i, j, 0] == pytest.approx(y * slope[0] + x * slope[1])


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=6, max_size=6), st.sampled_from([0, 1]))
def test_masking_zeroes_the_steps_that_hold_the_value_alone(x: list[float], value: int) -> None:
    steps = np.array(x).reshape(1, 3, 2)
    found = computed("Masking", {"mask_value": float(value)}, [], steps)
    for step in range(3):
        masked = all(number == value for number in steps[0, step])
        assert found[0, step].tolist() == ([0, 0] if masked else steps[0, step].tolist())


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("Dropout", {"rate": 0.5}),
        ("AlphaDropout", {"rate": 0.5, "noise_shape": None}),
        ("GaussianDropout", {"rate": 0.5}),
        ("GaussianNoise", {"stddev": 2.0}),
        ("SpatialDropout2D", {"rate": 0.5, "data_format": "channels_first"}),
        ("ActivityRegularization", {"l1": 1.0, "l2": 1.0}),
        ("Identity", {}),
    ],
)
def test_what_belongs_to_training_does_nothing(kind: str, config: dict[str, Any]) -> None:
    x = numbers(0, 2, 3, 4, 2)
    np.testing.assert_array_equal(computed(kind, config, [], x), x)


# Preparing data


@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(-6, 6), min_size=1, max_size=5),
)
def test_a_boundary_belongs_to_the_bin_on_its_right(borders: list[int], x: list[int]) -> None:
    ordered = sorted(borders)
    config = {"bin_boundaries": [float(b) for b in ordered], "output_mode": "int"}
    found = computed("Discretization", config, [], np.array([x], "float32"))
    assert found[0].tolist() == [sum(border <= value for border in ordered) for value in x]


def test_a_boundary_is_compared_in_the_type_of_the_input() -> None:
    x = np.array([[0.1]], "float32")
    config = {"bin_boundaries": [0.1], "output_mode": "int"}
    assert computed("Discretization", config, [], x).tolist() == [[1]]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), SEEDS)
def test_categories_are_counted_marked_or_weighted(ids: list[int], seed: int) -> None:
    x = np.array([ids])
    counts = [ids.count(token) for token in range(4)]
    mode = "output_mode"
    counted = computed("CategoryEncoding", {"num_tokens": 4, mode: "count"}, [], x)
    assert counted[0].tolist() == counts
    marked = computed("CategoryEncoding", {"num_tokens": 4, mode: "multi_hot"}, [], x)
    assert marked[0].tolist() == [min(count, 1) for count in counts]
    weights = numbers(seed, 1, len(ids))
    layer = layer_of(
        "CategoryEncoding",
        {"num_tokens": 4, mode: "count"},
        kwargs={"count_weights": {"$ref": ["x1", 0]}},
    )
    outputs = outputs_of_call(layer, [], x, weights)
    assert outputs is not None
    for token in range(4):
        own = sum(w for w, i in zip(weights[0], ids, strict=True) if i == token)
        assert outputs[0][0, token] == pytest.approx(own)


def test_a_rescaling_by_one_number_and_a_crop_in_the_middle() -> None:
    x = np.arange(20.0).reshape(1, 4, 5, 1)
    scaled = computed("Rescaling", {"scale": 0.5, "offset": -1}, [], x)
    np.testing.assert_array_equal(scaled, x / 2 - 1)
    cropped = computed("CenterCrop", {"height": 2, "width": 2}, [], x)
    np.testing.assert_array_equal(cropped, x[:, 1:3, 1:3])  # of the odd row the end is cut
    layer = layer_of("CenterCrop", {"height": 5, "width": 2})
    assert outputs_of_call(layer, [], x) is None


# Infinities


def test_infinities_go_where_they_go() -> None:
    x = np.array([[-np.inf, np.inf]])
    assert computed("ReLU", {}, [], x).tolist() == [[0.0, np.inf]]
    assert computed("Activation", {"activation": "sigmoid"}, [], x).tolist() == [[0.0, 1.0]]
    infinite = outputs_of_call(layer_of("Maximum", {}, listed(2)), [], x, -x)
    assert infinite is not None
    assert infinite[0].tolist() == [[np.inf, np.inf]]
