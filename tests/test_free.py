"""Layers on tensors of their own: what is drawn for them can show what faults need to be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Json, Layer, Model, Ref
from outvote.core.protocol import KindsListed
from outvote.dialects.keras.mutate.catalogue import Catalogue
from outvote.dialects.keras.mutate.maker import Blueprint, Maker
from outvote.dialects.keras.mutate.rules import free
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Spec, Subject

DRAWS = 600
CONV = "filters kernel_size strides padding data_format dilation_rate activation use_bias"
KINDS = {
    "Conv2D": (CONV, "filters kernel_size"),
    "LSTM": ("units return_sequences go_backwards unroll", "units"),
    "Concatenate": ("axis", ""),
    "Activation": ("activation", "activation"),
    "CategoryEncoding": ("num_tokens output_mode", ""),
    "GroupNormalization": ("groups axis epsilon", ""),
    "Resizing": ("height width interpolation", "height width"),
    "Dropout": ("rate", "rate"),
}
ACTIVATIONS = [f"activation_{n}" for n in range(30)]


class Willing(Maker):
    """Makes whatever is asked for, without weights, and asks nobody."""

    def make(
        self,
        kind: str,
        parameters: Mapping[str, Any],
        given: Sequence[Spec],
        joined: bool = False,
        tried: bool = True,
        named: Mapping[str, Json] | None = None,
    ) -> Blueprint | None:
        told = {"kind": kind, "config": parameters, "module": "", "registered": "", "build": None}
        return Blueprint(told, (), (given[0],), joined, kwargs=named or {})


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    told = {
        kind: [
            {"name": name, "required": name in required.split(), "default": None}
            for name in parameters.split()
        ]
        for kind, (parameters, required) in KINDS.items()
    }
    catalogue = Catalogue.of(KindsListed(kinds=told, activations=ACTIVATIONS))
    blobs = BlobStore(tmp_path_factory.mktemp("blobs"))
    tools = KerasTools(blobs, Willing(lambda request: pytest.fail("asked"), blobs), catalogue)
    parent = Subject(
        Model("any", (Input("x", (None, 2), "float32"),), (), (Ref("x"),), "keras"), {}
    )
    rngs = [np.random.default_rng([7, n]) for n in range(DRAWS)]
    return [free.apply(parent, None, tools, rng) for rng in rngs]


def of_kind(drawn: Sequence[Subject], kind: str) -> Iterator[tuple[Subject, Layer]]:
    for subject in drawn:
        layer = subject.model.layers[-1]
        if layer.kind == kind:
            yield subject, layer


def masks(subject: Subject) -> list[np.ndarray | None]:
    """Of what the last layer reads."""
    layers = {layer.name: layer for layer in subject.model.layers}
    arrays = {i.name: a for i, a in zip(subject.model.inputs, subject.inputs, strict=True)}
    found = []
    for ref in subject.model.layers[-1].refs():
        before = layers.get(ref.producer)
        found.append(None if before is None else (arrays[before.inputs[0]] != 0).any(-1))
    return found


def test_what_comes_is_what_was_announced_as_far_as_it_was(drawn: list[Subject]) -> None:
    for subject in drawn:
        for item, array in zip(subject.model.inputs, subject.inputs, strict=True):
            assert len(item.shape) == array.ndim
            assert all(n in (None, m) for n, m in zip(item.shape, array.shape, strict=True))
            assert array.dtype.name == ("float32" if item.dtype == "bfloat16" else item.dtype)


def test_kernels_may_be_larger_than_what_they_are_laid_on_where_that_is_not_known_before(
    drawn: list[Subject],
) -> None:
    larger = {True: 0, False: 0}
    for subject, layer in of_kind(drawn, "Conv2D"):
        known = subject.model.inputs[0].shape
        place = subject.inputs[0].shape[1:]
        inner = place[1:] if layer.config.get("data_format") == "channels_first" else place[:-1]
        sizes = layer.config["kernel_size"]
        sizes = sizes if isinstance(sizes, list) else [sizes] * 2
        too_large = any(size > n for size, n in zip(sizes, inner, strict=True))
        if layer.config.get("padding") != "same" and 0 not in place:
            larger[None in known[1:]] += too_large
    assert larger[True] > larger[False]


def test_masks_have_holes_and_one_of_two_tensors_may_have_none(drawn: list[Subject]) -> None:
    holes = [
        row
        for subject, _ in of_kind(drawn, "LSTM")
        for mask in masks(subject)
        if mask is not None
        for row in mask
        if [a and not b for a, b in pairwise(row)].count(True) and row[::-1].argmax() == 0
    ]
    assert holes
    pairs = [
        [mask is None for mask in masks(subject)] for subject, _ in of_kind(drawn, "Concatenate")
    ]
    assert {True, False} in [set(pair) for pair in pairs]
    assert any(len(pair) == 3 for pair in pairs)
    assert all(mask is None for subject, _ in of_kind(drawn, "Resizing") for mask in masks(subject))


def test_some_layers_have_one_or_two_parameters_and_others_most(drawn: list[Subject]) -> None:
    counts = [len(layer.config.keys() - {"name", "dtype"}) for _, layer in of_kind(drawn, "Conv2D")]
    assert min(counts) <= 4
    assert max(counts) >= 7


def test_two_parameters_that_act_on_each_other_come_alone(drawn: list[Subject]) -> None:
    """Steps and padding, both other than usual, and nothing that would hide what the two do."""
    alone = [
        layer
        for _, layer in of_kind(drawn, "Conv2D")
        if layer.config.keys() - {"name", "dtype"}
        == {"filters", "kernel_size", "padding", "strides"}
    ]
    assert any(
        layer.config["padding"] == "same" and layer.config["strides"] != 1 for layer in alone
    )


def test_every_activation_meets_numbers_of_many_kinds_at_once(drawn: list[Subject]) -> None:
    found = {layer.config["activation"] for _, layer in of_kind(drawn, "Activation")}
    assert len(found) > len(ACTIVATIONS) / 2
    mixed = 0
    for subject, _ in of_kind(drawn, "Activation"):
        (array,) = subject.inputs
        if array.dtype.kind == "f" and array.size:
            mixed += bool(np.isnan(array).any() and np.isinf(array).any() and (array == 0).any())
    assert mixed > 3


def test_whole_numbers_and_pixels_come_in_several_types(drawn: list[Subject]) -> None:
    assert {s.inputs[0].dtype.name for s, _ in of_kind(drawn, "CategoryEncoding")} >= {
        "int32",
        "int64",
    }
    images = [s.inputs[0] for s, _ in of_kind(drawn, "Resizing")]
    assert any(array.dtype == np.uint8 and array.size and array.max() > 100 for array in images)


def test_what_does_nothing_at_inference_is_drawn_seldom(drawn: list[Subject]) -> None:
    assert len(list(of_kind(drawn, "Dropout"))) < DRAWS / 30


def test_every_value_of_every_parameter_comes_in_turn(drawn: list[Subject]) -> None:
    """The corners of the rows, and among them those that no draw would give."""
    layers = [layer for _, layer in of_kind(drawn, "LSTM")]
    assert {7, 16} <= {layer.config["units"] for layer in layers}
    interpolations = {layer.config.get("interpolation") for _, layer in of_kind(drawn, "Resizing")}
    assert interpolations >= {"nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"}


def test_a_kind_is_given_every_type_and_integers(drawn: list[Subject]) -> None:
    found = {subject.model.inputs[0].dtype for subject, _ in of_kind(drawn, "LSTM")}
    assert {"float32", "float16", "bfloat16", "float64"} <= found
    assert found & {"int32", "uint8", "int8", "int64", "bool"}


def test_instances_of_a_batch_are_filled_in_ways_of_their_own(drawn: list[Subject]) -> None:
    batches = [subject.inputs[0] for subject, _ in of_kind(drawn, "LSTM")]
    unlike = [
        {bool(np.isfinite(instance).all()) for instance in batch}
        for batch in batches
        if batch.dtype.kind == "f"
    ]
    assert unlike.count({True, False}) > len(batches) / 10
