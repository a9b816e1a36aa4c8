"""What is drawn for the parameters of layers: what keeps a shape keeps it, and the rest is legal.

The lengths are those that Keras documents, written down here once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from outvote.core.protocol import KindsListed
from outvote.dialects.keras.mutate import values as v
from outvote.dialects.keras.mutate.catalogue import NOT_DRAWN, Catalogue, Kind
from outvote.dialects.keras.mutate.parameters import (
    EXCEPTIONS,
    ILLEGAL,
    PARAMETERS,
    Parameter,
    parameter,
)
from outvote.dialects.keras.mutate.values import NESTED, Draw

ACTIVATIONS = ("relu", "tanh", "glu")
DRAWS = 40
PLACES = {2: (6, 4), 3: (5, 7, 6), 4: (4, 3, 5, 2)}
CONV = "filters kernel_size strides padding data_format dilation_rate groups use_bias".split()
DEPTHWISE = "kernel_size strides padding depth_multiplier data_format dilation_rate".split()
TURNED = "filters kernel_size strides padding output_padding data_format dilation_rate".split()
POOLING = "pool_size strides padding data_format".split()


def kind_of(name: str, parameters: Sequence[str], required: Sequence[str] = ()) -> Kind:
    """A kind as a worker that has it would list it."""
    told = [{"name": p, "required": p in required, "default": None} for p in parameters]
    found = Catalogue.of(KindsListed(kinds={name: told}, activations=list(ACTIVATIONS)))
    return found.kinds[name]


def drawn(kind: Kind, place: Sequence[int | None], keep: bool) -> Iterator[dict[str, Any]]:
    for seed in range(DRAWS):
        yield kind.draw(place, np.random.default_rng(seed), ACTIVATIONS, keep)


def one_draw(kind: str, place: tuple[int | None, ...], keep: bool = False, **so_far: Any) -> Draw:
    return Draw(kind, place, np.random.default_rng(0), ACTIVATIONS, keep, so_far)


def per_axis(value: Any, axes: int) -> list[int]:
    return list(value) if isinstance(value, list | tuple) else [value] * axes


def parted(place: Sequence[int], parameters: dict[str, Any]) -> tuple[list[int], int]:
    """The lengths of a place, and its channels."""
    if parameters.get("data_format") == "channels_first":
        return list(place[1:]), place[0]
    return list(place[:-1]), place[-1]


def window(n: int, size: int, stride: int, dilation: int, padding: str) -> int:
    """How many windows there are."""
    if padding in ("same", "causal"):
        return math.ceil(n / stride)
    return (n - (size - 1) * dilation - 1) // stride + 1


def lengths(place: Sequence[int], given: dict[str, Any], size: str) -> list[int]:
    """What a convolution or a pooling with these parameters leaves of each axis."""
    inner, _ = parted(place, given)
    axes = len(inner)
    sizes = per_axis(given.get(size, 2), axes)
    strides = given.get("strides", 1 if size == "kernel_size" else sizes)
    rows = zip(
        inner, sizes, per_axis(strides, axes), per_axis(given.get("dilation_rate", 1), axes),
        strict=True,
    )  # fmt: skip
    return [window(*row, given.get("padding", "valid")) for row in rows]


# What must keep a shape does.


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_that_keep_the_shape(axes: int) -> None:
    place = PLACES[axes + 1]
    kind = kind_of(f"Conv{axes}D", CONV, ["filters", "kernel_size"])
    assert kind.ranks == (axes + 1,)
    sizes = set()
    for given in drawn(kind, place, keep=True):
        inner, channels = parted(place, given)
        assert lengths(place, given, "kernel_size") == inner
        assert given["filters"] == channels
        sizes.add(str(given["kernel_size"]))
    assert len(sizes) > 3  # and they are not all alike


@pytest.mark.parametrize("axes", [1, 2])
def test_depthwise_convolutions_and_poolings_that_keep_the_shape(axes: int) -> None:
    place = PLACES[axes + 1]
    for given in drawn(kind_of(f"DepthwiseConv{axes}D", DEPTHWISE, ["kernel_size"]), place, True):
        assert lengths(place, given, "kernel_size") == parted(place, given)[0]
        assert given["depth_multiplier"] == 1
    for name in (f"MaxPooling{axes}D", f"AveragePooling{axes}D"):
        for given in drawn(kind_of(name, POOLING), place, keep=True):
            assert lengths(place, given, "pool_size") == parted(place, given)[0]


def test_what_pads_crops_enlarges_and_folds_keeps_the_shape_too() -> None:
    place = PLACES[3]
    for given in drawn(kind_of("ZeroPadding2D", ["padding", "data_format"]), place, keep=True):
        assert given["padding"] == 0
    for given in drawn(kind_of("Cropping2D", ["cropping", "data_format"]), place, keep=True):
        assert given["cropping"] == [[0, 0], [0, 0]]
    for given in drawn(kind_of("UpSampling2D", ["size", "interpolation"]), place, keep=True):
        assert given["size"] == 1
    for given in drawn(kind_of("Reshape", ["target_shape"], ["target_shape"]), place, keep=True):
        assert given["target_shape"] == list(place)
    resizing = kind_of("Resizing", ["height", "width"], ["height", "width"])
    for given in drawn(resizing, place, keep=True):
        assert (given["height"], given["width"]) == place[:2]


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_recurrent_layers_that_keep_the_shape_give_a_step_for_a_step(name: str) -> None:
    kind = kind_of(name, ["units", "return_sequences", "return_state"], ["units"])
    for given in drawn(kind, (6, 4), keep=True):
        assert (given["units"], given["return_sequences"]) == (4, True)
        assert not given.get("return_state")


def test_wrappers_that_keep_the_shape_wrap_what_does() -> None:
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        (kind, inner) = v.layer(Draw("Bidirectional", (6, 4), rng, (), True))[NESTED]
        assert kind in ("LSTM", "GRU", "SimpleRNN")
        assert inner == {"units": 4, "return_sequences": True}
        assert v.layer(Draw("TimeDistributed", (6, 4), rng, (), True)) == {
            NESTED: ["Dense", {"units": 4}]
        }
        cells = v.cell(Draw("RNN", (6, 4), rng, (), True))
        last = cells[-1] if isinstance(cells, list) else cells
        assert last[NESTED][1] == {"units": 4}
    image = v.layer(one_draw("TimeDistributed", (3, 5, 5, 2), keep=True))[NESTED]
    assert image == ["Conv2D", {"filters": 2, "kernel_size": 3, "padding": "same"}]


# What is free is legal.


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_free_convolutions_are_such_as_the_guide_allows(axes: int) -> None:
    place = PLACES[axes + 1]
    changed = 0
    for given in drawn(kind_of(f"Conv{axes}D", CONV, ["filters", "kernel_size"]), place, False):
        inner, channels = parted(place, given)
        strides = per_axis(given.get("strides", 1), axes)
        dilation = per_axis(given.get("dilation_rate", 1), axes)
        assert not (max(strides) > 1 and max(dilation) > 1), "Keras takes one of them"
        groups = given.get("groups", 1)
        assert channels % groups == 0
        assert given["filters"] % groups == 0
        if given.get("padding") == "causal":
            assert axes == 1
            assert given.get("data_format") != "channels_first"
        if given.get("padding") != "same":
            pairs = zip(per_axis(given["kernel_size"], axes), inner, strict=True)
            assert all(size <= n for size, n in pairs)
        changed += lengths(place, given, "kernel_size") != inner
    assert changed > DRAWS / 4


def test_output_padding_is_less_than_every_stride() -> None:
    kind = kind_of("Conv2DTranspose", TURNED, ["filters", "kernel_size"])
    seen = set()
    for given in drawn(kind, PLACES[3], keep=False):
        padding = given.get("output_padding")
        assert padding is None or padding < min(per_axis(given.get("strides", 1), 2))
        seen.add(padding)
    assert len(seen) > 1
    assert v.output_padding(one_draw("Conv2DTranspose", (5, 5, 2), keep=True, strides=3)) is None


def test_croppings_leave_something_of_every_axis() -> None:
    place = (1, 2, 9, 3)
    for given in drawn(kind_of("Cropping3D", ["cropping"], ["cropping"]), place, keep=False):
        for (before, after), n in zip(given["cropping"], place, strict=False):
            assert before + after < n


def test_groups_divide_the_axis_that_they_split() -> None:
    kind = kind_of("GroupNormalization", ["groups", "axis", "epsilon"])
    assert {"groups", "axis"} <= kind.required
    for given in drawn(kind, (4, 6, 9), keep=True):
        axis = given["axis"]
        assert (4, 6, 9)[axis - 1 if axis > 0 else axis] % given["groups"] == 0


def test_an_axis_is_one_whose_size_is_known() -> None:
    place = (None, 3, None, 5)
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        assert v.axis(Draw("BatchNormalization", place, rng, (), False)) in (2, 4, -1)
        found = v.axis(Draw("LayerNormalization", (2, 3), rng, (), False))
        if isinstance(found, list):
            assert found == [1, 2]
    assert v.axis(one_draw("BatchNormalization", (None,))) == -1
    assert v.axis(one_draw("Normalization", (None, 3))) in (None, -1, 2)


def test_a_permutation_is_one_and_a_shape_keeps_its_numbers() -> None:
    for seed in range(DRAWS):
        draw = Draw("Permute", (2, 3, 5), np.random.default_rng(seed), (), False)
        assert sorted(v.permutation(draw)) == [1, 2, 3]
        sizes = v.reshaped(draw)
        known = math.prod(n for n in sizes if n != -1)
        assert known == 30 or (sizes.count(-1) == 1 and 30 % known == 0)
    assert v.reshaped(one_draw("Reshape", (None, 3), keep=True)) == [-1, 3]


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_an_equation_computes_what_its_shape_says(rank: int) -> None:
    place = (2, 3, 4, 5)[:rank]
    equations = set()
    for seed in range(DRAWS):
        draw = Draw("EinsumDense", place, np.random.default_rng(seed), (), False)
        equation = draw.drawn["equation"] = v.equation(draw)
        shape = v.einsum_shape(draw)
        read, given = equation.partition("->")[::2]
        ours, kernels = read.split(",")
        sizes = dict(zip(ours[-rank:], place, strict=True))
        sizes |= dict(zip(given[-len(shape) :], shape, strict=True))
        if given.startswith("..."):  # one size is told, that of the last axis
            shape = [*place[:-1], *shape]
        kernel = np.ones([sizes[letter] for letter in kernels])
        found = np.einsum(equation, np.ones((7, *place)), kernel)
        assert list(found.shape) == [7, *shape]
        axes = v.bias_axes(draw)
        assert axes is None or given.endswith(axes)
        equations.add(equation)
    assert len(equations) > 2
    assert v.einsum_shape(one_draw("Dense", place)) is None
    assert v.einsum_shape(one_draw("EinsumDense", place, keep=True)) == list(place)


def test_the_place_is_read_by_the_data_format_that_was_drawn_before() -> None:
    assert one_draw("Conv2D", (5, 7, 3)).spatial == [5, 7]
    first = one_draw("Conv2D", (5, 7, 3), data_format="channels_first")
    assert (first.spatial, first.channels) == ([7, 3], 5)
    assert one_draw("ConvLSTM2D", (4, 5, 7, 3)).spatial == [5, 7]
    turned = one_draw("ConvLSTM2D", (4, 5, 7, 3), data_format="channels_first")
    assert turned.spatial == [7, 3]
    assert one_draw("Conv1D", (None, 3)).spatial == [4]  # of a free length nothing is known
    assert one_draw("Dense", ()).channels == 1
    parameters = ["filters", "axis", "padding", "data_format", "kernel_size", "strides"]
    kind = kind_of("Conv2D", [*parameters, "equation", "layer"])
    given = kind.draw((5, 7, 3), np.random.default_rng(1), ACTIVATIONS, False, share=1.0)
    assert tuple(given)[: len(v.FIRST)] == v.FIRST


def test_no_activation_is_drawn_that_changes_the_shape() -> None:
    for seed in range(DRAWS):
        draw = Draw("Dense", (4,), np.random.default_rng(seed), ACTIVATIONS, True)
        assert v.activation(draw) in ("relu", "tanh")


# The rows and the catalogue.


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_row_draws_something_legal_and_its_corners_are_legal(name: str) -> None:
    row = PARAMETERS[name]
    for place in PLACES.values():
        for keep in (True, False):
            draw = Draw("Any", place, np.random.default_rng(len(name)), ACTIVATIONS, keep)
            value = row.draw(draw)
            assert value is not None or row.may_be_none or name in ("axis", "output_shape",
                                                                    "num_bins")  # fmt: skip
            same = [bad for bad in row.illegal if type(bad) is type(value) and bad == value]
            assert same == [], (name, place, value)
    for corner in row.corners:
        assert corner not in [bad for bad in row.illegal if type(bad) is type(corner)]


def test_what_may_be_none_is_not_refused_as_none() -> None:
    free = Parameter("count", v.number(1), may_be_none=True)
    assert (None in ILLEGAL["count"], None in free.illegal) == (True, False)
    assert set(free.illegal) == set(ILLEGAL["count"]) - {None}
    listed = Parameter("float", v.number(1.0), refused=(None, -1.0))
    assert listed.illegal == (None, -1.0)


def test_the_row_of_a_kind_goes_before_the_row_by_name() -> None:
    assert parameter("Rescaling", "scale") is EXCEPTIONS["Rescaling", "scale"]
    assert parameter("BatchNormalization", "scale") is PARAMETERS["scale"]
    assert parameter("MaxPooling2D", "strides") != parameter("Conv2D", "strides")
    dtype = parameter("Dense", "dtype")
    assert dtype is not None
    assert "bfloat16" in dtype.corners
    assert parameter("Dense", "no_such") is None


def test_the_catalogue_says_why_a_kind_is_left_out() -> None:
    told = {"name": "frobnicate", "required": True, "default": None}
    free = {"name": "units", "required": False, "default": 1}
    seed = {"name": "seed", "required": False, "default": None}
    names = ("Lambda", "RandomFlip", "RandomCrop", "New", "Dense", "Conv2DTranspose", "Add")
    listed = {name: [told] if name == "New" else [free, seed] for name in names}
    found = Catalogue.of(KindsListed(kinds=listed, activations=list(ACTIVATIONS)))
    assert found.not_covered == {
        "Lambda": NOT_DRAWN["Lambda"],
        "RandomFlip": "passes its input on, except in training, where chance decides",
        "New": "no values are known for its parameter frobnicate",
    }
    assert found.kinds["Dense"].parameters == ("units",)  # and not the seed
    assert found.kinds["Conv2DTranspose"].ranks == (3,)
    assert (found.kinds["Add"].arity, found.kinds["Add"].joined) == (2, True)
    assert {kind.name for kind in found.fitting(3)} == {
        "RandomCrop", "Dense", "Conv2DTranspose", "Add",
    }  # fmt: skip
    assert {kind.name for kind in found.fitting(2)} == {"Dense", "Add"}
