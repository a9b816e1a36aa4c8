"""The float64 reference by itself: documented examples, and what it gives no answer to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.model import REF, Layer
from outvote.core.states import State
from outvote.dialects.keras.reference import is_exact, reference


def layer_of(kind: str, **config: Any) -> Layer:
    return Layer("it", kind, config, [{REF: ["x0", 0]}], origin={"module": "keras.layers"})


def answer(layer: Layer, x: Any, *weights: Any) -> list[Array] | None:
    return reference(layer, [np.asarray(w) for w in weights], [State(np.asarray(x))])


def test_examples_of_the_documentation() -> None:
    """Values that Keras' documentation prints, so that libraries are not the only witness."""
    bins = answer(
        layer_of("Discretization", bin_boundaries=[0.0, 1.0, 2.0], output_mode="int"),
        [[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]],
    )
    assert bins is not None
    assert bins[0].tolist() == [[0, 2, 3, 1], [1, 3, 2, 1]]
    assert bins[0].dtype.kind == "i"
    hot = answer(
        layer_of("CategoryEncoding", num_tokens=4, output_mode="multi_hot"),
        [[0, 1], [0, 0], [1, 2], [3, 1]],
    )
    assert hot is not None
    assert hot[0].tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
    pooled = answer(
        layer_of("AveragePooling1D", pool_size=2, strides=1, padding="same"),
        [[[1.0], [2.0], [3.0], [4.0], [5.0]]],
    )
    assert pooled is not None
    assert pooled[0].ravel().tolist() == [1.5, 2.5, 3.5, 4.5, 5.0]


@pytest.mark.parametrize(
    ("why", "layer"),
    [
        ("an unknown kind", layer_of("Lambda")),
        ("an unknown parameter", layer_of("ReLU", new_in_keras_9=True)),
        ("an unknown value", layer_of("UpSampling2D", size=2, interpolation="lanczos3")),
        ("an unknown activation", layer_of("Activation", activation="mine")),
        ("a class of the user's", replace(layer_of("ReLU"), origin={"module": "mine"})),
        ("a registered class", replace(layer_of("ReLU"), origin={"registered": "mine>ReLU"})),
        (
            "an operation with the name of a layer",
            replace(layer_of("Add"), origin={"module": "keras.ops"}),
        ),
        ("training", replace(layer_of("Dropout", rate=0.5), kwargs={"training": True})),
        ("an unknown argument", replace(layer_of("ReLU"), kwargs={"power": 2})),
        ("a quantised layer", layer_of("ReLU", dtype="int8_from_float32")),
        ("weights that it does not have", layer_of("Dense", units=2)),
        ("a window larger than its input", layer_of("AveragePooling1D", pool_size=9, strides=1)),
        ("an axis that is not there", layer_of("Softmax", axis=7)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_covered_gets_no_guess(why: str, layer: Layer) -> None:
    shape = (2, 4, 1) if "1D" in layer.kind else (2, 4)
    assert answer(layer, np.ones(shape)) is None, why


def test_a_kernel_larger_than_its_input_has_no_result() -> None:
    layer = layer_of("Conv1D", filters=1, kernel_size=9, use_bias=False)
    assert reference(layer, [np.ones((9, 1, 1))], [State(np.ones((2, 4, 1)))]) is None


def test_sparsemax_is_a_distribution() -> None:
    x = np.random.default_rng(0).normal(size=(50, 6)) * 3 - 1
    found = answer(layer_of("Activation", activation="sparsemax"), x)
    assert found is not None
    assert np.allclose(found[0].sum(axis=-1), 1)
    # The projection is the closest point of the simplex: closer than softmax, and than a corner.
    corners = np.eye(6)[x.argmax(axis=-1)]
    powers = np.exp(x)
    for other in (corners, powers / powers.sum(axis=-1, keepdims=True)):
        mine, its = (np.square(x - y).sum(axis=-1) for y in (found[0], other))
        assert (mine <= its + 1e-12).all()


def test_float64_all_the_way_and_whole_numbers_stay_whole() -> None:
    kernel, bias = np.ones((2, 1), "float32"), np.zeros(1, "float32")
    wide = answer(layer_of("Dense", units=1), np.array([[1e8, 1.0]], "float32"), kernel, bias)
    assert wide is not None
    assert wide[0].tolist() == [[100000001.0]]
    whole = answer(layer_of("MaxPooling1D", pool_size=2), np.array([[[1], [3], [2], [2]]], "int32"))
    assert whole is not None
    assert whole[0].dtype.kind == "i"
    assert whole[0].ravel().tolist() == [3, 2]


def test_ids_and_numbers_outside_what_is_documented_get_no_answer() -> None:
    assert answer(layer_of("Embedding"), [[0, 7]], np.ones((3, 2))) is None
    assert answer(layer_of("Embedding"), [[0, -1]], np.ones((3, 2))) is None


def test_nan_is_the_largest_of_numbers_and_is_not_dropped() -> None:
    found = answer(layer_of("MaxPooling1D", pool_size=2), np.array([[[1.0], [np.nan]]]))
    assert found is not None
    assert np.isnan(found[0]).all()


def test_exact_kinds_are_those_that_only_compare_or_move() -> None:
    assert all(
        is_exact(kind, covered=True) for kind in ("MaxPooling2D", "Discretization", "Cropping1D")
    )
    assert not any(
        is_exact(kind, covered=True) for kind in ("Dense", "AveragePooling2D", "Softmax", "Unheard")
    )
