"""Our formulas for ONNX operators, held against the examples that ONNX' own text gives."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_models import constant, floats, model, value
from outvote.bench.noise import moves_only
from outvote.core.blobs import BlobStore
from outvote.core.model import Layer
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.dialects.onnx.nouns.types import widened
from outvote.dialects.onnx.reference import formulas, is_exact, strict_reference
from outvote.dialects.onnx.reference.node_call import Uncovered
from outvote.dialects.onnx.widen import float64_of
from outvote.dialects.onnx.workers.shared.assemble import assemble
from outvote.dialects.onnx.workers.shared.read import read
from outvote.worker.main import Refused

pytestmark = pytest.mark.frameworks

# Random by what they are asked for, or wrong in the example: of aligned corners the text says
# x_resized * (length_original - 1) / (length_resized - 1), and lengths are whole numbers.
OTHERWISE = (
    *("training", "bernoulli"),
    *(f"resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")),
)
REAL = {"QLinearConv"}  # what it rounds to the text does not say


@cache
def examples() -> dict[str, list[Any]]:
    """ONNX' node tests of one node, by operator."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, list[Any]] = {}
    with warnings.catch_warnings():  # the examples are made anew, and ONNX takes no care
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in formulas():
            found.setdefault(nodes[0].op_type, []).append(case)
    return found


def as_array(given: Any) -> Any:
    tensor = isinstance(given, onnx.TensorProto)
    return widened(numpy_helper.to_array(given) if tensor else np.asarray(given))


@pytest.mark.parametrize("operator", sorted(formulas().keys() - REAL))
def test_every_formula_gives_what_onnx_says(operator: str, tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    proved = 0
    for case in examples()[operator]:
        if any(word in case.name for word in OTHERWISE):
            continue
        try:
            found = read("case", case.model.SerializeToString(), blobs, {}, {}).model
        except Refused:  # strings and sequences
            continue
        (layer,) = found.layers
        (inputs, outputs), *_ = case.data_sets
        named = dict(zip([i.name for i in found.inputs], map(as_array, inputs), strict=True))
        items = {item.name: item for item in found.inputs}
        given = [State(named[r.producer], dtype=items[r.producer].dtype) for r in layer.refs()]
        weights = [blobs.get(weight.digest) for weight in layer.weights]
        try:
            results = strict_reference(layer, weights, given)
        except Uncovered:
            continue
        proved += 1
        for got, right in zip(results, map(as_array, outputs), strict=True):
            assert got.shape == right.shape, case.name
            narrow = "16" in case.name or right.dtype.name == "float16"
            coarse = "bfloat16" in case.name or "bf16" in case.name
            close = 1e-2 if coarse else 2e-3 if narrow else max(case.rtol, 1e-5)
            np.testing.assert_allclose(
                got.astype(float), right.astype(float), rtol=close, atol=1e-5, err_msg=case.name
            )
    assert proved, f"no example of {operator} is covered"


def test_softmax_of_old_opsets_flattens(tmp_path: Path) -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=1)
    proto = model([node], [value("x", [2, 2, 2])], [value("y", [2, 2, 2])], opset=11)
    (layer,) = read("m", proto.SerializeToString(), BlobStore(tmp_path), {}, {}).model.layers
    (y,) = strict_reference(layer, [], [State(np.zeros((2, 2, 2), np.float32))])
    np.testing.assert_array_equal(y, np.full((2, 2, 2), 0.25))


def test_an_attribute_that_no_formula_knows_is_not_covered(tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], surprise=1)
    proto = model([node], [value("x", [2])], [value("y", [2])])
    (layer,) = read("m", proto.SerializeToString(), BlobStore(tmp_path), {}, {}).model.layers
    with pytest.raises(Uncovered, match="surprise"):
        strict_reference(layer, [], [State(floats([1, 2]))])


def test_what_only_moves_numbers_says_so() -> None:
    assert is_exact("Transpose", covered=False)
    assert not is_exact("Softmax", covered=True)
    assert is_exact("Round", covered=False)
    assert is_exact("QuantizeLinear", covered=True)
    assert not is_exact("QuantizeLinear", covered=False)  # the quotient lies at a step


def test_a_graph_in_float64_asks_for_nothing_narrower(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    body = helper.make_graph(
        [helper.make_node("Cast", ["k"], ["t"], to=onnx.TensorProto.FLOAT16)],
        "then",
        [],
        [value("t", [2], onnx.TensorProto.FLOAT16)],
    )
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=onnx.TensorProto.FLOAT16),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
        helper.make_node("Add", ["h", "y"], ["z"]),
    ]
    inputs = [value("x", [2]), value("c", [], onnx.TensorProto.BOOL)]
    constants = [constant("k", floats([1, 2]))]
    proto = model(nodes, inputs, [value("z", [2], onnx.TensorProto.FLOAT16)], constants)
    found = read("m", proto.SerializeToString(), blobs, {}, {}).model
    wide = float64_of(Specimen(found, (floats([0.1, 0.2]), np.array(True))), blobs)
    again = assemble(wide.model, blobs).proto
    assert _types_in(again) == {onnx.TensorProto.DOUBLE, onnx.TensorProto.BOOL}
    assert wide.inputs[0].dtype == np.float64


def _types_in(proto: Any) -> set[int]:
    """Every tensor type that a model mentions."""
    found = {item.type.tensor_type.elem_type for item in proto.graph.input}
    for node in proto.graph.node:
        found |= _types_of(node)
    return found | {tensor.data_type for tensor in proto.graph.initializer}


def _types_of(node: Any) -> set[int]:
    found = {attribute.i for attribute in node.attribute if attribute.name == "to"}
    for attribute in node.attribute:
        for inner in attribute.g.node:
            found |= _types_of(inner)
        found |= {item.type.tensor_type.elem_type for item in attribute.g.output}
        found |= {tensor.data_type for tensor in attribute.g.initializer}
    return found


def test_noise_tells_nothing_of_layers_that_compute_nothing() -> None:
    """Of one that does, in front of a jump, it does: rounding may take a number over it."""

    def layers(*kinds: str) -> list[Layer]:
        return [Layer(f"l{place}", kind, {}) for place, kind in enumerate(kinds)]

    assert moves_only("onnx", layers("Round"))
    assert moves_only("onnx", layers("Transpose", "Round"))
    assert not moves_only("onnx", layers("Sigmoid", "Round"))
    assert not moves_only("onnx", layers("QuantizeLinear"))
    assert moves_only("onnx", layers("QuantizeLinear"), covered=True)
    assert not moves_only("torch_export", layers("round"))  # without formulas nobody knows
