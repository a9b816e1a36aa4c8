"""Our formulas for ONNX' operators, held against ONNX' own reference on nodes that are drawn.

ONNX' examples (`test_onnx_reference.py`) show each operator a few times, as its authors thought of
it; drawn nodes have other shapes, attributes and arguments.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_here import NAME, Here
from outvote.core.case import random_data
from outvote.core.model import Layer
from outvote.core.states import State
from outvote.dialects.onnx.nouns.node import (
    WEIGHT,
    Origin,
    origin_of,
    ref,
    tensors_of,
    with_origin,
)
from outvote.dialects.onnx.nouns.requests import DrawNodes, GivenTensor
from outvote.dialects.onnx.reference import formulas, is_exact, reference, strict_reference
from outvote.dialects.onnx.reference.node_call import Uncovered

SHAPES = ((2, 3, 6, 5), (3, 4), (3, 1, 2))
# What QLinearConv rounds to the text does not say; ONNX' reference counts images where LRN has
# channels. ONNX' examples hold LRN.
ELSEWHERE = {"QLinearConv", "LRN"}
RECURRENT = {"RNN", "GRU", "LSTM"}  # most nodes of which read sequences that end early
# How much NonZero gives depends on values; of others the types, shapes or opset are not those here.
NOT_DRAWN = {
    *("NonZero", "AffineGrid", "Attention", "BitShift", "CumProd"),
    *("DequantizeLinear", "QLinearMatMul"),
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    return Here(tmp_path_factory.mktemp("formulas"))


def drawn(here: Here, operator: str, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """A model of one node of that operator; None where it takes no such tensor."""
    tensors = tuple(GivenTensor(shape, kind, None) for kind in (dtype, dtype))
    request = DrawNodes(given=tensors, opset=20, ir=9, seed=seed, kinds=(operator,))
    run = here.ask(NAME, request)
    return run.reply.model if run.ok else None


@pytest.mark.parametrize("operator", sorted(formulas().keys() - ELSEWHERE))
def test_a_formula_gives_what_the_reference_gives(here: Here, operator: str) -> None:
    tensors = [(shape, "float32") for shape in SHAPES]
    tensors.append(((3, 4), "bool" if operator in ("And", "Or", "Xor", "Not") else "int64"))
    held = 0
    for seed, (shape, dtype) in enumerate(tensors * (6 if operator in RECURRENT else 1)):
        model = drawn(here, operator, shape, dtype, seed)
        # ONNX' reference looks for the maximum along wrong axes where these are not images.
        if model is None or (operator == "GlobalMaxPool" and len(shape) != 4):
            continue
        (layer,) = model.layers
        if operator in RECURRENT and "clip" in layer.config:  # which ONNX' reference ignores
            continue
        whole = replace(model, outputs=tuple(tensors_of(origin_of(layer), layer.name)))
        inputs = random_data(whole, 1, seed).inputs
        run = here.asked(whole, inputs)
        named = dict(zip([i.name for i in model.inputs], inputs, strict=True))
        given = [State(named[r.producer], batch=None) for r in layer.refs()]
        weights = [np.asarray(here.blobs.get(w.digest)) for w in layer.weights]
        found = reference(layer, weights, given)
        if found is None or not run.ok:
            continue
        held += 1
        for got, right in zip(found, run.reply.outputs.arrays, strict=True):
            assert got.shape == right.shape, layer
            alike(operator, got, right)
    assert held or operator in NOT_DRAWN, "none of the nodes that were drawn is covered"


def alike(operator: str, got: Any, right: Any) -> None:
    if right.dtype.kind != "f":
        np.testing.assert_array_equal(got, right)
        return
    narrow = got.astype(right.dtype)
    if is_exact(operator, covered=True):
        np.testing.assert_array_equal(narrow, right)
        return
    size = np.max(np.abs(right), initial=1e-3, where=np.isfinite(right))
    np.testing.assert_allclose(narrow, right, rtol=1e-4, atol=1e-5 * size)


# What no formula covers


def node(kind: str, opset: int = 18, constants: int = 0, **config: Any) -> Layer:
    args = [ref("x"), *({WEIGHT: n} for n in range(constants))]
    return with_origin(Layer("y", kind, config, args), Origin({"": opset}))


X = State(np.array([[1.0, -2.0, 3.0]], np.float32))
COUNTS = State(np.array([[1, -2, 3]]))
ODD = State(np.array([[1.0, np.inf, np.nan]], np.float32))


SEQUENCE = State(np.ones((3, 1, 1), np.float32))
ADDS: Any = {"constants": 3, "activations": ["Relu"]}
RNN = [np.ones((1, 1, 1), np.float32)] * 2 + [np.zeros((1, 2), np.float32)]  # W, R, B


@pytest.mark.parametrize(
    ("layer", "weights", "given", "why"),
    [
        (node("NoSuch"), [], X, "NoSuch"),
        (node("RNN", constants=4), [*RNN, np.array([2])], SEQUENCE, "the end of a sequence"),
        (node("RNN", constants=3, activations=["Affine"]), RNN, SEQUENCE, "affine"),
        (node("LSTM", constants=3, input_forget=1), RNN, SEQUENCE, "input_forget=1"),
        (node("Attention", 23, 2), [X.array] * 2, X, "heads that cannot be told apart"),
        (node("Relu", surprise=1), [], X, "surprise=1"),
        (node("Add"), [], X, "Add without its argument 1"),
        (node("Add", 6, 1), [np.ones(3)], X, "before opset 7"),
        (node("Sqrt"), [], COUNTS, "Sqrt of int64"),
        (node("Gelu", approximate="magic"), [], X, "approximate='magic'"),
        (node("Div", constants=1), [np.array([0])], COUNTS, "divided by zero"),
        (node("Softmax"), [], ODD, "infinities or NaN"),
        (node("ReduceLogSumExp"), [], ODD, "infinities"),
        (node("ReduceMean"), [], COUNTS, "a reduction of integers"),
        (node("ReduceMean"), [], State(np.zeros((1, 0), np.float32)), "a reduction of nothing"),
        (node("Slice", 9), [], X, "Slice before opset 10"),
        (node("Tile", 5), [], X, "Tile before opset 6"),
        (node("Pad", 10), [], X, "Pad before opset 11"),
        (node("Pad", constants=1), [np.array([0, -1, 0, 0])], X, "pads below zero"),
        (node("Pad", constants=1, mode="odd"), [np.array([0, 0, 0, 0])], X, "mode='odd'"),
        (node("Gather", constants=1), [np.array([1])], X, "indices that are not there"),
        (node("Split", constants=1), [np.array([1, 1])], X, "a split of other sizes"),
        (node("Split", 12, num_outputs=2, axis=1), [], X, "a split into unequal parts"),
        (node("Dropout", 6), [], X, "Dropout in training"),
    ],
)
def test_what_is_not_covered_is_said_and_never_guessed(
    layer: Layer, weights: list[Any], given: State, why: str
) -> None:
    with pytest.raises(Uncovered, match=why.replace("(", r"\(")):
        strict_reference(layer, weights, [given])
    assert reference(layer, weights, [given]) is None


def test_sub_graphs_and_texts_are_not_covered() -> None:
    inner = with_origin(Layer("y", "Relu", {}, [ref("x")], {"z": ref("z")}), Origin({"": 18}))
    with pytest.raises(Uncovered, match="sub-graphs"):
        strict_reference(inner, [], [X, X])
    texts = with_origin(
        Layer("y", "Equal", {}, [ref("x"), {"$strings": ["a"], "shape": [1]}]), Origin({"": 18})
    )
    with pytest.raises(Uncovered, match="strings"):
        strict_reference(texts, [], [X])


# Corners that are easily wrong, by hand


@pytest.mark.parametrize(
    ("layer", "weights", "given", "right"),
    [
        (node("Clip", 11, 2), [np.float32(0), np.float32(2)], X, [[1, 0, 2]]),
        (node("Clip", 6, min=-1.0), [], X, [[1, -1, 3]]),
        (node("Round"), [], State(np.array([[0.5, 1.5, -2.5]], np.float32)), [[0, 2, -2]]),
        (node("Div", constants=1), [np.array([2])], State(np.array([[-3, 3]])), [[-1, 1]]),
        (node("Reshape", constants=1), [np.array([0, -1, 1])], X, [[[1], [-2], [3]]]),
        (node("Flatten", axis=-1), [], X, [[1, -2, 3]]),
        (node("Flatten", axis=0), [], X, [[1, -2, 3]]),
        (
            node("Slice", constants=4),
            [np.array([-1]), np.array([-9]), np.array([1]), np.array([-2])],
            X,
            [[3, 1]],
        ),
        (node("Shape", start=1), [], X, [3]),
        (node("Mean", constants=1), [np.array([[3.0, 2.0, 1.0]])], X, [[2, 0, 2]]),
        (node("ReduceSum", 11, axes=[1], keepdims=0), [], X, [2]),
        (node("ReduceSum", noop_with_empty_axes=1), [], X, [[1, -2, 3]]),
        (node("Softmax", 12, axis=0), [], State(np.zeros((2, 2), np.float32)), [[0.25] * 2] * 2),
        (node("Softmax", 13, axis=0), [], State(np.zeros((2, 2), np.float32)), [[0.5] * 2] * 2),
        (node("Relu"), [], State(np.array([-1, 2])), [0, 2]),
        (node("RNN", **ADDS), RNN, SEQUENCE, [[[[1]]], [[[2]]], [[[3]]]]),
        (node("RNN", direction="reverse", **ADDS), RNN, SEQUENCE, [[[[3]]], [[[2]]], [[[1]]]]),
        (node("RNN", clip=2.5, **ADDS), RNN, SEQUENCE, [[[[1]]], [[[2]]], [[[2.5]]]]),
    ],
)
def test_corners(layer: Layer, weights: list[Any], given: State, right: Any) -> None:
    (found, *_) = strict_reference(layer, [np.asarray(w) for w in weights], [given])
    np.testing.assert_array_equal(found, np.array(right))


def test_nan_is_passed_on_by_relu() -> None:
    (found,) = strict_reference(node("Relu"), [], [ODD])
    np.testing.assert_array_equal(found, ODD.array)


def test_what_is_left_out_is_none_and_what_is_not_asked_for_is_not_given(tmp_path: Path) -> None:
    """LayerNormalization has three outputs; a node may have the first and the third alone."""
    layer = with_origin(
        Layer("y", "LayerNormalization", {}, [ref("x"), {WEIGHT: 0}, None]),
        Origin({"": 18}, outputs=(0, 2)),
    )
    y, inverse = strict_reference(layer, [np.ones(3)], [X])
    x = X.array.astype(float)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5))
    np.testing.assert_allclose(y, (x - x.mean()) * inverse)
