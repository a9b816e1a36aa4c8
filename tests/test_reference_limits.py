"""Where the reference says nothing: every limit, by the sentence that names it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from outvote.core.model import REF, Layer
from outvote.core.states import State
from outvote.dialects.keras.reference import compute, covered, reference, strict_reference
from outvote.dialects.keras.reference.call import NotCovered, call_of

FLAT = np.ones((2, 4), "float32")
STEPS = np.ones((2, 3, 4), "float32")
IMAGE = np.ones((2, 4, 4, 2), "float32")
MASK = np.ones((2, 3), bool)


def layer(kind: str, *tensors: int, listed: bool = False, **config: Any) -> Layer:
    """A layer that is called with so many tensors, one by one or as a list."""
    count = tensors[0] if tensors else 1
    refs: list[Any] = [{REF: [f"x{n}", 0]} for n in range(count)]
    return Layer("l", kind, config, [refs] if listed else refs)


def called(made: Layer, **kwargs: Any) -> Layer:
    return Layer(made.name, made.kind, made.config, made.args, kwargs)


def weights(*shapes: tuple[int, ...]) -> list[Any]:
    return [np.ones(shape) for shape in shapes]


CELL = {"module": "keras.layers", "class_name": "LSTMCell", "config": {"units": 4}}
DENSE = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 4}}
MINE = {"module": "mine", "class_name": "LSTMCell", "config": {}}
HEADS: dict[str, Any] = {"num_heads": 1, "key_dim": 2, "use_bias": False}
HEAD_WEIGHTS = weights((4, 1, 2), (4, 1, 2), (4, 1, 2), (1, 2, 4))

LIMITS: list[tuple[str, Layer, list[Any], list[Any]]] = [
    ("Rescaling by other than one number", layer("Rescaling", scale=[1.0, 2.0]), [FLAT], []),
    ("bins that were not given", layer("Discretization", num_bins=3), [FLAT], []),
    ("NaN to put in one", layer("Discretization", bin_boundaries=[0.0]), [FLAT * np.nan], []),
    (
        "Discretization(sparse=True)",
        layer("Discretization", bin_boundaries=[0.0], sparse=True),
        [FLAT],
        [],
    ),
    ("categories outside the range", layer("CategoryEncoding", num_tokens=1), [FLAT], []),
    ("categories outside the range", layer("CategoryEncoding", num_tokens=3), [FLAT / 2], []),
    ("weights without counts", layer("CategoryEncoding", 2, num_tokens=3), [FLAT, FLAT], []),
    (
        "samples of other than one dimension",
        layer("CategoryEncoding", num_tokens=3, output_mode="multi_hot"),
        [STEPS],
        [],
    ),
    ("CenterCrop of a smaller image", layer("CenterCrop", height=9, width=2), [IMAGE], []),
    ("images without a batch", layer("CenterCrop", height=2, width=2), [IMAGE[0]], []),
    ("Resizing(antialias=True)", layer("Resizing", height=2, width=2, antialias=True), [IMAGE], []),
    (
        "Resizing(interpolation='bicubic')",
        layer("Resizing", height=2, width=2, interpolation="bicubic"),
        [IMAGE],
        [],
    ),
    (
        "Resizing of whole numbers, which are rounded",
        layer("Resizing", height=2, width=2),
        [IMAGE.astype("uint8")],
        [],
    ),
    ("attention of other than two or three", layer("Attention", 1, listed=True), [STEPS], []),
    ("attention of other than two or three", layer("Attention", 2), [STEPS, STEPS], []),
    (
        "attention with masks of another form",
        called(layer("Attention", 2, listed=True), mask={REF: ["m", 0]}),
        [STEPS, STEPS, MASK],
        [],
    ),
    (
        "a query that may attend to nothing",
        layer("Attention", 2, listed=True),
        [STEPS, State(STEPS, ~MASK)],
        [],
    ),
    (
        "Attention(score_mode='mine')",
        layer("Attention", 2, listed=True, score_mode="mine"),
        [STEPS, STEPS],
        [],
    ),
    (
        "attention over other than one axis",
        layer("MultiHeadAttention", 2, **HEADS),
        [IMAGE, IMAGE],
        HEAD_WEIGHTS,
    ),
    (
        "an attention mask of another rank",
        called(layer("MultiHeadAttention", 2, **HEADS), attention_mask={REF: ["m", 0]}),
        [STEPS, STEPS, MASK],
        HEAD_WEIGHTS,
    ),
    (
        "MultiHeadAttention with 0 weights",
        layer("MultiHeadAttention", 2, **HEADS),
        [STEPS, STEPS],
        [],
    ),
    (
        "MultiHeadAttention(attention_axes=[2])",
        layer("MultiHeadAttention", 2, attention_axes=[2], **HEADS),
        [STEPS, STEPS],
        HEAD_WEIGHTS,
    ),
    ("a cell that is not of Keras", layer("RNN", cell=MINE), [STEPS], []),
    ("a cell that is not of Keras", layer("RNN", cell=[CELL, MINE]), [STEPS], []),
    (
        "a layer inside that is not of Keras",
        layer("TimeDistributed", layer=MINE),
        [STEPS],
        [],
    ),
    (
        "TimeDistributed with a mask",
        layer("TimeDistributed", layer=DENSE),
        [State(STEPS, MASK)],
        weights((4, 4), (4,)),
    ),
    (
        "Bidirectional that does not say its backward layer",
        layer("Bidirectional", layer={**CELL, "class_name": "LSTM"}),
        [STEPS],
        [],
    ),
    (
        "BatchNormalization over several axes",
        layer("BatchNormalization", axis=[1, 2]),
        [STEPS],
        weights(*[(4,)] * 4),
    ),
    (
        "GroupNormalization over several axes",
        layer("GroupNormalization", groups=2, axis=[1, 2]),
        [STEPS],
        weights((4,), (4,)),
    ),
    ("Add of something else than a list", layer("Add"), [FLAT], []),
    ("Subtract of other than two", layer("Subtract", 3, listed=True), [FLAT] * 3, []),
    ("truth values", layer("Add", 2, listed=True), [FLAT > 0] * 2, []),
    ("tensors of different ranks", layer("Multiply", 2, listed=True), [FLAT, STEPS], []),
    (
        "ReversibleEmbedding called with reverse",
        called(
            layer("ReversibleEmbedding", input_dim=3, output_dim=2, tie_weights=True), reverse=True
        ),
        [FLAT.astype(int)],
        weights((3, 2)),
    ),
    (
        "ids outside the table",
        layer("Embedding", input_dim=1, output_dim=2),
        [FLAT.astype(int)],
        weights((1, 2)),
    ),
    ("glu of an odd number of channels", layer("Activation", activation="glu"), [FLAT[:, :3]], []),
    (
        "Softmax with a mask of another rank",
        called(layer("Softmax"), mask={REF: ["m", 0]}),
        [STEPS, MASK],
        [],
    ),
    ("ReLU called with 2 arguments", layer("ReLU", 2), [FLAT, FLAT], []),
    ("ReLU called with mask", called(layer("ReLU"), mask={REF: ["m", 0]}), [FLAT, FLAT], []),
    ("an argument that is no tensor", Layer("l", "ReLU", {}, [3.0]), [], []),
    ("an argument that is an object", Layer("l", "ReLU", {}, [{"$object": {}}]), [], []),
    (
        "Dense(dtype='int8_from_float32')",
        layer("Dense", units=4, dtype="int8_from_float32"),
        [FLAT],
        weights((4, 4), (4,)),
    ),
    ("no formula for Lambda", layer("Lambda"), [FLAT], []),
    ("ReLU(surprise=1)", layer("ReLU", surprise=1), [FLAT], []),
]


@pytest.mark.parametrize(("says", "made", "given", "held"), LIMITS, ids=[x[0] for x in LIMITS])
def test_a_limit_is_named_and_gives_no_answer(
    says: str, made: Layer, given: list[Any], held: list[Any]
) -> None:
    states = [item if isinstance(item, State) else State(item) for item in given]
    with pytest.raises(NotCovered) as limit, np.errstate(all="ignore"):
        compute(call_of(made, held, states))
    assert says in str(limit.value)
    assert strict_reference(made, held, states) is None
    assert reference(made, held, states) is None


def test_what_cannot_be_computed_is_no_answer_and_is_told_where_one_asks() -> None:
    """Targets may accept it: whoever tests the formulas must see it all the same."""
    wrong = layer("Dense", units=2)
    states, held = [State(FLAT)], weights((3, 2), (2,))
    assert reference(wrong, held, states) is None
    with pytest.raises(ValueError, match=r"matmul|shapes|mismatch"):
        strict_reference(wrong, held, states)


def test_parameters_that_change_nothing_are_not_asked_for() -> None:
    plain = layer("ReLU", name="r", trainable=False, dtype="float32", new=None)
    found = reference(plain, [], [State(-FLAT)])
    assert found is not None
    assert (found[0] == 0).all()
    training = called(layer("ReLU"), training=False, mask=None)
    assert reference(training, [], [State(FLAT)]) is not None


def test_the_limits_are_of_kinds_that_have_a_formula() -> None:
    limited = {made.kind for _, made, _, _ in LIMITS} - {"Lambda"}
    assert limited <= covered()


def test_numbers_of_nothing_warn_nobody() -> None:
    code = """
import numpy as np
from outvote.core.model import REF, Layer
from outvote.core.states import State
from outvote.dialects.keras.reference import reference
layer = Layer("l", "GroupNormalization", {"groups": 1}, [{REF: ["x", 0]}])
nothing = State(np.zeros((2, 0, 3), "float32"))
print(reference(layer, [np.ones(3), np.ones(3)], [nothing])[0].shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("(2, 0, 3)\n", "")
