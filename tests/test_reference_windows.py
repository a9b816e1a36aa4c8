"""Convolutions and pooling of the reference against sums written index by index."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from outvote.core.arrays import Array
from outvote.core.states import State
from reference_calls import SEEDS, computed, layer_of, numbers, outputs_of_call

RANKS = st.integers(1, 3)


def per_axis(least: int, most: int, rank: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(least, most), min_size=rank, max_size=rank)


def same_start(size: int, reach: int, stride: int) -> int:
    """Places of padding before the first: half of what is missing, the smaller half."""
    windows = math.ceil(size / stride)
    return max((windows - 1) * stride + reach - size, 0) // 2


def window_starts(size: int, reach: int, stride: int, padding: str) -> list[int]:
    """Where each window begins along one axis; below zero it begins in the padding."""
    if padding == "valid":
        return list(range(0, size - reach + 1, stride))
    if padding == "causal":
        return [i * stride - (reach - 1) for i in range(math.ceil(size / stride))]
    first = same_start(size, reach, stride)
    return [i * stride - first for i in range(math.ceil(size / stride))]


def inside(place: Sequence[int], sizes: Sequence[int]) -> bool:
    return all(0 <= p < n for p, n in zip(place, sizes, strict=True))


def at_place(*place: int) -> Any:
    """An index: this place, of all samples."""
    return (slice(None), *place)


def walked(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding: str,
) -> Iterator[tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]]]:
    """(output place, [(offset in the window, place of the input)]) for every window."""
    reaches = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    starts = [
        window_starts(n, r, s, padding) for n, r, s in zip(sizes, reaches, strides, strict=True)
    ]
    for at in itertools.product(*(range(len(each)) for each in starts)):
        reads = []
        for offset in itertools.product(*map(range, window)):
            place = tuple(
                starts[axis][at[axis]] + offset[axis] * dilation[axis] for axis in range(len(sizes))
            )
            if inside(place, sizes):
                reads.append((offset, place))
        yield at, reads


def stacked(rows: dict[tuple[int, ...], Array]) -> Array:
    """Vectors by their place, as one tensor: (batch, *places, channels)."""
    counts = [max(place[axis] for place in rows) + 1 for axis in range(len(next(iter(rows))))]
    first = next(iter(rows.values()))
    tensor = np.zeros((len(first), *counts, first.shape[-1]))
    for place, row in rows.items():
        tensor[at_place(*place)] = row
    return tensor


@st.composite
def windows(draw: Any) -> tuple[list[int], list[int], list[int], list[int]]:
    """Sizes, window, strides and dilation; Keras has strides or dilation, not both."""
    rank = draw(RANKS)
    sizes = draw(per_axis(2, 5, rank))
    window = draw(per_axis(1, 3, rank))
    strides = draw(per_axis(1, 3, rank))
    dilation = draw(per_axis(1, 2, rank)) if max(strides) == 1 else [1] * rank
    return sizes, window, strides, dilation


@given(windows(), st.sampled_from(["valid", "same", "causal"]), st.integers(1, 2), SEEDS)
def test_a_convolution_is_a_sum_over_offsets_channels_and_groups(
    drawn: tuple[list[int], list[int], list[int], list[int]], padding: str, groups: int, seed: int
) -> None:
    sizes, window, strides, dilation = drawn
    rank = len(sizes)
    assume(padding != "causal" or rank == 1)
    reaches = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    assume(padding != "valid" or all(r <= n for r, n in zip(reaches, sizes, strict=True)))
    x = numbers(seed, 2, *sizes, 2 * groups)
    kernel = numbers(seed + 1, *window, 2, 3 * groups)
    bias = numbers(seed + 2, 3 * groups)
    config = {"padding": padding, "strides": strides, "dilation_rate": dilation, "groups": groups}
    rows: dict[tuple[int, ...], Array] = {}
    for at, reads in walked(sizes, window, strides, dilation, padding):
        row = np.tile(bias, (2, 1))
        for offset, place in reads:
            for out in range(3 * groups):
                group = out // 3
                for channel in range(2):
                    taken = x[at_place(*place, 2 * group + channel)]
                    row[:, out] += taken * kernel[(*offset, channel, out)]
        rows[at] = row
    found = computed(f"Conv{rank}D", {**config, "filters": 3 * groups}, [kernel, bias], x)
    np.testing.assert_allclose(found, stacked(rows), atol=1e-12)


@given(windows(), st.sampled_from(["valid", "same"]), st.integers(1, 3), SEEDS)
def test_a_depthwise_kernel_belongs_to_its_channel_and_outputs_follow_one_another(
    drawn: tuple[list[int], list[int], list[int], list[int]], padding: str, times: int, seed: int
) -> None:
    sizes, window, strides, dilation = drawn
    rank = len(sizes)
    assume(rank < 3)
    reaches = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    assume(padding != "valid" or all(r <= n for r, n in zip(reaches, sizes, strict=True)))
    x, kernel = numbers(seed, 1, *sizes, 2), numbers(seed + 1, *window, 2, times)
    config = {"padding": padding, "strides": strides, "dilation_rate": dilation, "use_bias": False}
    rows = {}
    for at, reads in walked(sizes, window, strides, dilation, padding):
        row = np.zeros((1, 2 * times))
        for offset, place in reads:
            for channel in range(2):
                for m in range(times):
                    taken = x[at_place(*place, channel)]
                    row[:, channel * times + m] += taken * kernel[(*offset, channel, m)]
        rows[at] = row
    found = computed(f"DepthwiseConv{rank}D", {**config, "depth_multiplier": times}, [kernel], x)
    np.testing.assert_allclose(found, stacked(rows), atol=1e-12)


@given(st.integers(1, 2), SEEDS)
def test_a_separable_convolution_is_a_depthwise_one_and_a_sum_over_channels(
    rank: int, seed: int
) -> None:
    x = numbers(seed, 2, *[4, 5][:rank], 3)
    depthwise, bias = numbers(seed + 1, *[2, 3][:rank], 3, 2), numbers(seed + 3, 4)
    pointwise = numbers(seed + 2, *[1] * rank, 6, 4)
    config: dict[str, Any] = {"padding": "same", "filters": 4, "activation": "relu"}
    found = computed(f"SeparableConv{rank}D", config, [depthwise, pointwise, bias], x)
    alone = {"padding": "same", "use_bias": False}
    middle = computed(f"DepthwiseConv{rank}D", alone, [depthwise], x)
    mixed = np.einsum("...c,co->...o", middle, pointwise.reshape(6, 4)) + bias
    np.testing.assert_allclose(found, np.maximum(mixed, 0), atol=1e-12)


@given(windows(), st.sampled_from(["valid", "same"]), SEEDS)
def test_a_transposed_convolution_is_the_gradient_of_a_convolution(
    drawn: tuple[list[int], list[int], list[int], list[int]], padding: str, seed: int
) -> None:
    """⟨conv(z), x⟩ = ⟨z, transposed(x)⟩ for every z: that is what transposed means.

    The convolution goes from the transposed one's output to its input, with the same kernel.
    """
    sizes, window, strides, _ = drawn
    rank = len(sizes)
    kernel = numbers(seed, *window, 3, 2)  # (window, out of the transposed, into it)
    x = numbers(seed + 1, 1, *sizes, 2)
    config = {"padding": padding, "strides": strides, "use_bias": False}
    found = computed(f"Conv{rank}DTranspose", {**config, "filters": 3}, [kernel], x)
    z = numbers(seed + 2, *found.shape)
    forward = computed(f"Conv{rank}D", {**config, "filters": 2}, [kernel], z)
    assert forward.shape == x.shape
    assert np.vdot(forward, x) == pytest.approx(np.vdot(z, found), abs=1e-10)


@pytest.mark.parametrize(("extra", "length"), [(None, 8), (0, 7), (1, 8)])
def test_output_padding_lengthens_a_transposed_convolution(extra: Any, length: int) -> None:
    x, kernel = np.ones((1, 4, 1)), np.ones((3, 1, 1))
    config = {"strides": 2, "padding": "same", "output_padding": extra, "use_bias": False}
    found = computed("Conv1DTranspose", config, [kernel], x)
    assert found.shape == (1, length, 1)


@given(windows(), st.sampled_from(["valid", "same"]), st.sampled_from(["Max", "Average"]), SEEDS)
def test_pooling_looks_at_the_places_of_a_window_and_not_at_padding(
    drawn: tuple[list[int], list[int], list[int], list[int]], padding: str, how: str, seed: int
) -> None:
    sizes, window, strides, _ = drawn
    assume(padding != "valid" or all(w <= n for w, n in zip(window, sizes, strict=True)))
    rank = len(sizes)
    x = numbers(seed, 2, *sizes, 3)
    rows = {}
    for at, reads in walked(sizes, window, strides, [1] * rank, padding):
        seen = np.stack([x[at_place(*place)] for _, place in reads])
        rows[at] = seen.max(axis=0) if how == "Max" else seen.sum(axis=0) / len(reads)
    config = {"pool_size": window, "strides": strides, "padding": padding}
    found = computed(f"{how}Pooling{rank}D", config, [], x)
    np.testing.assert_allclose(found, stacked(rows), atol=1e-12)


def test_pooling_without_strides_walks_by_its_window() -> None:
    x = np.arange(7.0).reshape(1, 7, 1)
    found = computed("MaxPooling1D", {"pool_size": 3, "strides": None}, [], x)
    assert found.ravel().tolist() == [2, 5]


@given(RANKS, st.integers(1, 4), st.sampled_from(["Max", "Average"]), SEEDS)
def test_adaptive_windows_cover_every_place_and_are_as_many_as_wished(
    rank: int, wanted: int, how: str, seed: int
) -> None:
    sizes = [4, 6, 5][:rank]
    x = numbers(seed, 1, *sizes, 2)
    found = computed(f"Adaptive{how}Pooling{rank}D", {"output_size": wanted}, [], x)
    assert found.shape == (1, *[wanted] * rank, 2)
    for at in np.ndindex(*found.shape[1:-1]):
        seen = [
            [
                j
                for j in range(n)
                if math.floor(i * n / wanted) <= j < math.ceil((i + 1) * n / wanted)
            ]
            for i, n in zip(at, sizes, strict=True)
        ]
        window = x[np.ix_([0], *seen, [0, 1])].reshape(-1, 2)
        expected = window.max(axis=0) if how == "Max" else window.mean(axis=0)
        np.testing.assert_allclose(found[(0, *at)], expected, atol=1e-12)


@given(RANKS, st.booleans(), st.sampled_from(["Max", "Average"]), SEEDS)
def test_global_pooling_is_over_all_places(rank: int, keeps: bool, how: str, seed: int) -> None:
    x = numbers(seed, 2, *[3, 4, 2][:rank], 3)
    found = computed(f"Global{how}Pooling{rank}D", {"keepdims": keeps}, [], x)
    flat = x.reshape(2, -1, 3)
    expected = flat.max(axis=1) if how == "Max" else flat.sum(axis=1) / flat.shape[1]
    np.testing.assert_allclose(found.reshape(2, 3), expected, atol=1e-12)
    assert found.ndim == (rank + 2 if keeps else 2)


@given(SEEDS)
def test_a_masked_step_is_left_out_of_the_mean(seed: int) -> None:
    x, rng = numbers(seed, 3, 5, 2), np.random.default_rng(seed)
    mask = rng.random((3, 5)) < 0.5
    mask[:, rng.integers(5)] = True
    outputs = outputs_of_call(layer_of("GlobalAveragePooling1D", {}), [], State(x, mask))
    assert outputs is not None
    for row in range(3):
        np.testing.assert_allclose(outputs[0][row], x[row][mask[row]].mean(axis=0), atol=1e-12)
    mask[0] = False
    assert outputs_of_call(layer_of("GlobalAveragePooling1D", {}), [], State(x, mask)) is None


CHANNELS_FIRST = [
    ("Conv2D", {"filters": 2, "padding": "same", "strides": 2}, [(3, 2, 3, 2), (2,)]),
    ("DepthwiseConv2D", {"padding": "valid", "depth_multiplier": 2}, [(2, 2, 3, 2), (6,)]),
    ("SeparableConv2D", {"filters": 4}, [(2, 2, 3, 1), (1, 1, 3, 4), (4,)]),
    ("Conv2DTranspose", {"filters": 2, "strides": 2}, [(2, 3, 2, 3), (2,)]),
    ("MaxPooling2D", {"pool_size": 2}, []),
    ("AveragePooling2D", {"pool_size": [2, 3], "strides": 1, "padding": "same"}, []),
    ("GlobalMaxPooling2D", {"keepdims": True}, []),
    ("AdaptiveAveragePooling2D", {"output_size": [2, 3]}, []),
]


@pytest.mark.parametrize(("kind", "config", "shapes"), CHANNELS_FIRST, ids=lambda v: str(v)[:24])
def test_channels_first_is_the_same_with_the_axes_moved(
    kind: str, config: dict[str, Any], shapes: list[tuple[int, ...]]
) -> None:
    weights = [numbers(i, *shape) for i, shape in enumerate(shapes)]
    x = numbers(9, 2, 5, 6, 3)
    last = computed(kind, config, weights, x)
    first = computed(
        kind, {**config, "data_format": "channels_first"}, weights, np.moveaxis(x, -1, 1)
    )
    np.testing.assert_allclose(np.moveaxis(first, 1, -1), last, atol=1e-12)
