"""What the driver knows of a node of ONNX: parameters, neurons, words, and how it gets smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Layer, Model, Ref, Weight
from outvote.core.specimen import Specimen
from outvote.dialects.onnx import layers, neurons, reductions
from outvote.dialects.onnx.logits import logits_apart
from outvote.dialects.onnx.nouns.node import (
    GRAPH,
    STRINGS,
    WEIGHT,
    Origin,
    constants_in,
    kind_of,
    operator_of,
    opset_of,
    origin_of,
    ref,
    tensors_of,
    with_origin,
)
from outvote.dialects.onnx.nouns.types import CODES
from outvote.dialects.onnx.widen import float64_of
from outvote.triage import operators
from outvote.triage.reductions import Builder


def node(
    kind: str,
    *shapes: tuple[int, ...],
    reads: Sequence[str] = ("x",),
    name: str = "y",
    **config: Any,
) -> Layer:
    """A node that reads tensors, then constants of these shapes."""
    weights = tuple(Weight(f"w{n}", f"d{n}", shape) for n, shape in enumerate(shapes))
    args = [*(ref(read) for read in reads), *({WEIGHT: n} for n in range(len(shapes)))]
    return with_origin(Layer(name, kind, config, args, weights=weights), Origin({"": 17}))


def model_of(*nodes: Layer, **inputs: tuple[tuple[int | None, ...], str]) -> Model:
    given = inputs or {"x": ((None, 4), "float32")}
    told = tuple(Input(name, shape, dtype) for name, (shape, dtype) in given.items())
    return Model("m", told, nodes, (Ref(nodes[-1].name),), "onnx")


# Kinds, origins, constants


@pytest.mark.parametrize(
    ("domain", "operator", "kind"),
    [
        ("", "Relu", "Relu"),
        ("ai.onnx", "Relu", "Relu"),
        ("com.microsoft", "Gelu", "com.microsoft::Gelu"),
        ("a::b", "C", "a::b::C"),
    ],
)
def test_a_kind_names_domain_and_operator(domain: str, operator: str, kind: str) -> None:
    assert kind_of(domain, operator) == kind
    assert operator_of(kind) == ("" if domain == "ai.onnx" else domain, operator)


@pytest.mark.parametrize(
    "origin",
    [
        Origin({"": 17}),
        Origin({"": 13, "own": 2}, 7, (0, 2), [{"name": "f"}]),
        Origin({}, 10, (1,)),
    ],
)
def test_an_origin_survives_json(origin: Origin) -> None:
    assert origin_of(with_origin(node("Relu"), origin)) == origin
    assert tensors_of(origin, "n") == [Ref("n", place) for place in range(len(origin.outputs))]


def test_the_set_of_an_operator_is_that_of_its_domain() -> None:
    origin = Origin({"ai.onnx": 12, "own": 3})
    assert opset_of(with_origin(node("Relu"), origin)) == 12
    assert opset_of(with_origin(node("own::F"), origin)) == 3
    assert opset_of(with_origin(node("other::F"), origin)) == 0


def test_constants_are_found_at_any_depth() -> None:
    deep = {"body": {GRAPH: {"nodes": [{"args": [{WEIGHT: 3}, None, "t"]}], "w": {WEIGHT: 0}}}}
    assert [found[WEIGHT] for found in constants_in([{WEIGHT: 7}, deep])] == [7, 3, 0]
    assert list(constants_in("text")) == []


# Parameters, words, ids


def test_parameters_are_attributes_and_no_content() -> None:
    config: dict[str, Any] = {
        "axis": 1,
        "mode": "x",
        "body": {GRAPH: {}},
        "value": {WEIGHT: 0},
        "to": [1, 2],
    }
    assert layers.parameters(node("Scan", **config)) == {"axis": 1, "mode": "x", "to": [1, 2]}


def test_what_keras_has_and_onnx_has_not() -> None:
    relu = node("Relu")
    assert layers.dtype(relu) is None
    assert not layers.contains(relu, relu)
    assert layers.stale(relu) is relu
    assert not layers.makes_masks(relu)
    assert layers.renamed(relu, "z") == replace(relu, name="z")


def gathering(*sizes: int, axis: int = 0) -> Model:
    """Tables that the ids are looked up in."""
    tables = [
        replace(
            node("Gather", (size, 3) if axis == 0 else (3, size), name=f"g{place}", axis=axis),
            args=[{WEIGHT: 0}, ref("ids")],
        )
        for place, size in enumerate(sizes)
    ]
    return model_of(*tables, ids=((None, 2), "int64"))


@pytest.mark.parametrize(("sizes", "axis", "few"), [((9,), 0, 9), ((9, 5), 0, 5), ((7,), 1, 7)])
def test_ids_are_as_many_as_the_smallest_table_holds(
    sizes: tuple[int, ...], axis: int, few: int
) -> None:
    found = gathering(*sizes, axis=axis)
    assert layers.vocabulary(found, found.inputs[0]) == few


def test_where_no_table_says_how_many_ids_there_are_they_are_few() -> None:
    found = model_of(node("Gather", reads=("table", "ids")), table=((9, 3), "float32"),
                     ids=((None, 2), "int64"))  # fmt: skip
    assert layers.vocabulary(found, found.inputs[1]) == 2
    assert layers.vocabulary(found, found.inputs[0]) == 2, "the table holds no ids"


def test_words_are_those_that_a_node_knows_and_one_that_it_does_not() -> None:
    encoder = node("LabelEncoder", keys_strings=["cat", "dog", "cat"], default_string="none")
    found = model_of(encoder, x=((None,), "string"))
    assert layers.words(found, found.inputs[0]) == ["cat", "dog", "other"]
    equal = replace(node("Equal"), args=[ref("x"), {STRINGS: ["red"], "shape": [1]}])
    found = model_of(equal, x=((None,), "string"))
    assert layers.words(found, found.inputs[0]) == ["red", "other"]
    found = model_of(node("Identity", reads=("z",)), x=((None,), "string"), z=((1,), "string"))
    assert layers.words(found, found.inputs[0]) == ["other"], "nobody reads it"


@pytest.mark.parametrize("kind", ["Sigmoid", "Relu"])
def test_a_sigmoid_at_the_end_is_a_probability(kind: str) -> None:
    assert layers.is_classifier(model_of(node(kind))) == (kind == "Sigmoid")
    passed = replace(model_of(node(kind)), outputs=(Ref("x"),))
    assert not layers.is_classifier(passed)


def test_logits_are_what_a_squashing_node_reads() -> None:
    relu, soft = node("Relu", name="r"), node("Softmax", reads=("r",))
    assert logits_apart(model_of(relu, soft))[1] == Ref("r")
    assert logits_apart(model_of(relu))[1] == Ref("r")
    passed = replace(model_of(node("Softmax")), outputs=(Ref("x"),))
    assert logits_apart(passed)[1] == Ref("x")


# Neurons


@pytest.mark.parametrize(
    ("layer", "axes"),
    [
        (node("Conv", (8, 3, 3, 3), (8,)), [(0,), (0,)]),
        (node("ConvTranspose", (3, 8, 3, 3), (8,)), [(1,), (0,)]),
        (node("ConvTranspose", (3, 4, 3, 3), group=2), [()]),
        (node("Gemm", (4, 6), (6,)), [(1,), (-1,)]),
        (node("Gemm", (6, 4), transB=1), [(0,)]),
        (node("MatMul", (4, 6)), [(-1,)]),
        (node("MatMul", (4,)), [()]),
        (node("LSTM", (1, 16, 3), (1, 16, 4), (1, 32)), [(1,), (1,), ()]),
        (node("BatchNormalization", (4,), (4,), (4,), (4,)), [(0,)] * 4),
        (node("Add", (4,)), [()]),
    ],
)
def test_the_axes_that_number_neurons(layer: Layer, axes: list[tuple[int, ...]]) -> None:
    assert [neurons.neuron_axes(layer, weight) for weight in layer.weights] == axes


def test_a_constant_on_the_left_of_a_product_feeds_no_neuron_alone() -> None:
    turned = replace(node("MatMul", (4, 6)), args=[{WEIGHT: 0}, ref("x")])
    assert neurons.neuron_axes(turned, turned.weights[0]) == ()
    assert neurons.reader(turned) is None


@pytest.mark.parametrize(
    ("layer", "axis", "of"),
    [
        (node("Conv", (8, 3, 3, 3)), 1, 1),
        (node("ConvTranspose", (3, 8, 3, 3)), 0, 1),
        (node("Gemm", (4, 6)), 0, -1),
        (node("Gemm", (6, 4), transB=1), 1, -1),
        (node("MatMul", (4, 6)), -2, -1),
        (node("GRU", (1, 12, 3), (1, 12, 4)), 2, -1),
    ],
)
def test_who_weighs_the_channels_that_it_reads(layer: Layer, axis: int, of: int) -> None:
    found = neurons.reader(layer)
    assert found is not None
    assert (found.weight, found.axis, found.of) == (0, axis, of)


@pytest.mark.parametrize(
    "layer",
    [
        node("Conv", (8, 1, 3, 3), group=3),
        node("Gemm", (4, 6), transA=1),
        node("Relu"),
        node("MatMul", reads=("x", "z")),
    ],
)
def test_who_weighs_none(layer: Layer) -> None:
    assert neurons.reader(layer) is None


def test_channels_lie_behind_instances_in_images_and_last_elsewhere() -> None:
    assert neurons.channel_axis(node("Conv")) == neurons.channel_axis(node("PRelu")) == 1
    assert neurons.channel_axis(node("Gemm")) == -1
    assert neurons.keeps_channels(node("MaxPool"))
    assert not neurons.keeps_channels(node("Softmax"))
    assert neurons.flattens(node("Flatten"))
    assert not neurons.flattens(node("Flatten", axis=2))


def test_a_channel_that_was_laid_flat_has_all_its_places_together() -> None:
    x = np.arange(24).reshape(4, 6)  # four channels of six places
    rows = neurons.flat_rows(np.array([1, 3]), 4, 6)
    np.testing.assert_array_equal(x.reshape(-1)[rows], np.r_[x[1], x[3]])


# Smaller specimens


@dataclass(frozen=True)
class Blobs:
    """As much of a Builder as ONNX' own reductions use."""

    blobs: BlobStore


def specimen(blobs: BlobStore, layer: Layer, *constants: Array, count: int = 2) -> Specimen:
    weights = tuple(
        Weight(f"w{n}", blobs.put(array), array.shape) for n, array in enumerate(constants)
    )
    args = [ref("x"), *({WEIGHT: n} for n in range(len(constants)))]
    layer = replace(layer, weights=weights, args=args)
    return Specimen(model_of(layer), (np.ones((count, 4), np.float32),))


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return cast(Builder, Blobs(BlobStore(tmp_path)))


def test_attributes_go_all_at_once_then_one_by_one(builder: Builder) -> None:
    full = specimen(builder.blobs, node("Gemm", alpha=2.0, transB=1, body={GRAPH: {}}))
    found = [s.last.config for s in operators.fewer_attributes(full, builder)]
    assert found == [
        {"body": {GRAPH: {}}},
        {"transB": 1, "body": {GRAPH: {}}},
        {"alpha": 2.0, "body": {GRAPH: {}}},
    ]
    assert not list(operators.fewer_attributes(specimen(builder.blobs, node("Relu")), builder))


@pytest.mark.parametrize(
    ("value", "smaller"),
    [
        (9, [0, 1, 2, 4]),
        (1, [0]),
        (0, []),
        ([3, 3], [[0, 0], [1, 1], [2, 2]]),
        ([0, 2], [[0, 0], [0, 1]]),
        ([0, 0], []),
        (0.5, []),
        ("SAME", []),
        ([1.5], []),
    ],
)
def test_whole_numbers_get_smaller(builder: Builder, value: Any, smaller: list[Any]) -> None:
    full = specimen(builder.blobs, node("Pool", pads=value))
    found = [s.last.config["pads"] for s in reductions.smaller_attributes(full, builder)]
    assert found == smaller


def test_sizes_that_are_alike_are_cut_alike(builder: Builder) -> None:
    """Where only the input got smaller, the product would not fit any more."""
    weight = np.arange(24, dtype=np.float32).reshape(4, 6)
    full = specimen(builder.blobs, node("MatMul"), weight, count=6)
    found = list(operators.equal_sizes(full, builder))
    assert found
    for smaller in found:
        (x,), (kept,) = smaller.inputs, smaller.last.weights
        array = np.asarray(builder.blobs.get(kept.digest))
        assert x.shape[1] == array.shape[0], "they still fit"
        assert array.shape == kept.shape
        np.testing.assert_array_equal(array, weight[: array.shape[0], : array.shape[1]])
        assert smaller.numbers < full.numbers
        assert smaller.model.inputs[0].shape == (None, x.shape[1])


def test_large_specimens_keep_their_attributes(builder: Builder) -> None:
    chain = [node("Elu", name=f"n{i}", reads=(f"n{i - 1}" if i else "x",), alpha=2.0, k=7)
             for i in range(4)]  # fmt: skip
    for count, looked_at in ((4, False), (3, True)):
        full = Specimen(model_of(*chain[:count]), (np.ones((1, 4), np.float32),))
        for way in (operators.fewer_attributes, reductions.smaller_attributes):
            assert bool(list(way(full, builder))) is looked_at


# Wider numbers


def test_every_float_of_a_specimen_becomes_float64(builder: Builder) -> None:
    half, ids = np.ones(4, np.float16), np.arange(4)
    layer = node("Cast", to=CODES["float16"], dtype=CODES["int32"], k=CODES["float16"])
    narrow = specimen(builder.blobs, layer, half, ids)
    told = [ref("x"), {WEIGHT: 0, "type": "bfloat16"}, {WEIGHT: 1}]
    narrow = narrow.with_layer(replace(narrow.last, args=told))
    wide = float64_of(narrow, builder.blobs)
    assert wide.inputs[0].dtype == np.float64
    assert wide.model.inputs[0].dtype == "float64"
    assert wide.last.config == {"to": CODES["float64"], "dtype": CODES["int32"], "k": 10}
    assert wide.last.args == [ref("x"), {WEIGHT: 0}, {WEIGHT: 1}]
    dtypes = [np.asarray(builder.blobs.get(w.digest)).dtype.name for w in wide.last.weights]
    assert dtypes == ["float64", "int64"]
    again = float64_of(wide, builder.blobs)
    assert again.model.to_json() == wide.model.to_json()
