"""The catalogue of operators, the table of their attributes, and nodes and graphs drawn by them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from packaging.version import Version

from outvote.dialects.onnx.nouns import attributes
from outvote.dialects.onnx.nouns.attributes import LEFT_ALONE, illegal, others, values_of
from outvote.dialects.onnx.nouns.node import kind_of
from outvote.dialects.onnx.nouns.operators import ListOperators
from outvote.dialects.onnx.nouns.types import CODES, dtype_of
from outvote.dialects.onnx.targets import BUILT_IN
from outvote.dialects.onnx.workers.draw.graph import draw_graph, draw_node
from outvote.dialects.onnx.workers.draw.node import NodeDraw
from outvote.dialects.onnx.workers.draw.numbers import Range, drawn
from outvote.dialects.onnx.workers.draw.sketch import NewNode, Sketch, Unfit, Value
from outvote.dialects.onnx.workers.draw.table import (
    DRAWERS,
    drawable,
    drawer_of,
    readers_of,
    told_operators,
)
from outvote.run.local import LocalPool

NEWEST = onnx.defs.onnx_opset_version()
OPSETS = (11, 13, 17, 22, NEWEST)
TRIES = 6
# The tables know operators that an older release has not got yet (`make floor` tests with one).
of_the_newest = pytest.mark.skipif(
    Version(onnx.__version__) < Version("1.23"), reason="the tables are of onnx 1.23"
)


def test_the_catalogue_holds_every_operator_that_has_a_schema() -> None:
    found = told_operators(0)
    schemas = {kind_of(s.domain, s.name): s for s in onnx.defs.get_all_schemas()}
    assert found.keys() == schemas.keys()
    for kind, schema in schemas.items():
        operator = found[kind]
        assert operator.since == schema.since_version == operator.versions[-1]
        assert {item.name for item in operator.attributes} == schema.attributes.keys()
        assert [slot.name for slot in operator.inputs] == [i.name for i in schema.inputs]
    assert found["Softmax"].versions == (1, 11, 13)
    assert found["Conv"].attribute("group").default == 1  # type: ignore[union-attr]
    assert "float32" in found["Conv"].inputs[0].types


def test_a_version_of_the_set_has_what_it_had_then() -> None:
    old = told_operators(12)
    assert old["Softmax"].since == 11
    assert old["ReduceSum"].attribute("axes") is not None
    assert told_operators(13)["ReduceSum"].attribute("axes") is None
    assert "LayerNormalization" not in old


def test_what_is_not_drawn_has_its_reason() -> None:
    found = told_operators(0)
    reasons = {kind: item.not_drawn for kind, item in found.items() if item.not_drawn}
    assert reasons["RandomNormal"] == "gives other numbers every time"
    assert reasons["SequenceAt"] == "reads or gives no tensor of numbers"
    assert reasons["ai.onnx.ml::Scaler"] == "belongs to ai.onnx.ml"
    assert set(found) - set(reasons) == set(drawable(NEWEST))


@of_the_newest
def test_every_drawer_is_of_an_operator() -> None:
    assert len(drawable(NEWEST)) >= 170
    assert set(DRAWERS) <= set(drawable(NEWEST))


def test_an_operator_that_onnx_gets_tomorrow_joins_by_itself() -> None:
    """By its schema alone, if the names of its attributes are known."""
    by_name = [kind for kind in drawable(NEWEST) if kind not in DRAWERS]
    assert {"Relu", "Softmax", "LeakyRelu", "Add"} <= set(by_name)


def rows() -> list[Any]:
    return [
        pytest.param(operator, item, id=f"{kind}-{item.name}")
        for kind, operator in told_operators(0).items()
        if not operator.not_drawn
        for item in operator.attributes
        if item.name not in LEFT_ALONE and item.type not in ("TENSOR", "GRAPH")
    ]


@pytest.mark.parametrize(("operator", "item"), rows())
def test_every_attribute_of_what_is_drawn_has_a_row_that_knows_its_default(
    operator: Any, item: Any
) -> None:
    row = values_of(operator.name, item.name)
    assert row is not None
    if row.form in ("choice", "flag") and item.default is not None:
        assert item.default in row.legal(0)
    kinds = {"INT": int, "FLOAT": float, "STRING": str}
    if item.type in kinds:
        assert all(isinstance(value, kinds[item.type]) for value in row.legal(0))


@of_the_newest
@pytest.mark.slow
def test_no_row_is_for_nothing() -> None:
    known = {
        (operator.name, item.name)
        for opset in range(7, NEWEST + 1)
        for operator in told_operators(opset).values()
        for item in operator.attributes
    }
    assert set(attributes.BY_OPERATOR) <= known
    assert set(attributes.BY_NAME) <= {name for _, name in known}


@pytest.mark.parametrize(
    ("operator", "name", "value", "legal", "refused"),
    [
        ("Softmax", "axis", 1, [-1, 0, -2, 2], [99, -99, "no_such"]),
        ("MaxPool", "strides", [2, 2], [[1, 1], [3, 3], [5, 5]], ["no_such", [0, 0], [-1, -1]]),
        ("DepthToSpace", "mode", "CRD", ["DCR"], ["no_such", 7]),
        ("Pad", "mode", "edge", [], ["no_such", 7]),
        ("LSTM", "direction", "forward", ["reverse"], ["no_such", 7]),
        ("LSTM", "direction", "bidirectional", [], ["no_such", 7]),
        ("Transpose", "perm", [0, 2, 1], [[1, 2, 0]], ["no_such", [0, 0, 0], [0, 2]]),
        ("ReduceMax", "axes", [0, 1], [], [[99], [-99], "no_such"]),
        ("BatchNormalization", "momentum", 0.9, [], []),
        ("Conv", "no_such", 1, [], []),
    ],
)
def test_other_and_illegal_values(
    operator: str, name: str, value: Any, legal: list[Any], refused: list[Any]
) -> None:
    assert others(operator, name, value, 17) == legal
    assert illegal(operator, name, value) == refused


def test_newer_values_wait_for_their_version() -> None:
    assert "wrap" in values_of("Pad", "mode").legal(19)  # type: ignore[union-attr]
    assert "wrap" not in values_of("Pad", "mode").legal(17)  # type: ignore[union-attr]
    assert "max" not in others("ScatterND", "reduction", "none", 16)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.slow
def test_nodes_of_every_kind_are_drawn_and_valid(opset: int) -> None:
    made: Counter[str] = Counter()
    for kind in drawable(opset):
        for seed in range(TRIES):
            sketch = Sketch(opset, seed)
            draw = NodeDraw(sketch, kind)
            try:
                draw.added(drawer_of(kind)(draw))
            except Unfit:
                continue
            onnx.checker.check_model(sketch.model(), full_check=True)
            made[kind] += 1
    assert {kind for kind in drawable(opset) if made[kind] < TRIES / 3} == set()


EMPTY = [(0,), (2, 0), (0, 2, 3), (0, 2, 3, 3), (1, 2, 0, 4), (1, 2, 4, 0)]


@pytest.mark.parametrize("shape", EMPTY, ids=str)
def test_behind_a_tensor_of_nothing_a_node_is_drawn_or_does_not_fit(shape: tuple[int, ...]) -> None:
    """Nothing else may happen: whoever finds nothing to draw from says Unfit."""
    ended: Counter[str] = Counter()
    for kind in readers_of(NEWEST, "float32"):
        for seed in range(3):
            sketch = Sketch(NEWEST, seed)
            link = Value("given", "float32", shape)
            sketch.take(link)
            try:
                draw_node(sketch, link, [kind])
                ended["drawn"] += 1
            except Unfit:
                ended["unfit"] += 1
    assert min(ended["drawn"], ended["unfit"]) > 20


def test_inference_refuses_what_does_not_fit() -> None:
    sketch = Sketch(17, 0)
    for name, shape in (("a", (2, 3)), ("b", (4, 5))):
        sketch.take(Value(name, "float32", shape, computed=False))
    with pytest.raises(Unfit):
        sketch.add(NewNode("MatMul", ("a", "b"), {}))
    with pytest.raises(Unfit):
        sketch.add(NewNode("Softmax", ("a",), {"axis": 9}))
    assert (sketch.nodes, sketch.leaves) == ([], [])


@pytest.mark.parametrize("seed", range(40))
def test_graphs_are_valid_connected_and_repeatable(seed: int) -> None:
    opset, size = OPSETS[seed % len(OPSETS)], 1 + seed % 5
    found = draw_graph(opset, seed, size)
    onnx.checker.check_model(found.proto, full_check=True)
    graph = found.proto.graph
    assert len(graph.node) == size
    given = {name for node in graph.node for name in node.output}
    for node in graph.node[1:]:
        assert given & set(node.input), f"{node.op_type} stands alone"
    read = {name for node in graph.node for name in node.input}
    assert {value.name for value in graph.output} == given - read
    for value, array in zip(graph.input, found.feeds, strict=True):
        held = value.type.tensor_type
        assert array.shape == tuple(dim.dim_value for dim in held.shape.dim)
        assert CODES[array.dtype.name] == held.elem_type
    again = draw_graph(opset, seed, size)
    assert again.proto == found.proto
    assert all(map(np.array_equal, *([np.nan_to_num(a) for a in g.feeds] for g in (found, again))))


def test_graphs_are_of_the_kinds_that_are_named() -> None:
    kinds = ["Conv", "Relu", "MaxPool"]
    graphs = [draw_graph(17, seed, 3, kinds).proto.graph for seed in range(20)]
    assert {node.op_type for graph in graphs for node in graph.node} == set(kinds)


@pytest.mark.parametrize("kind", list(Range))
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool", "bfloat16"])
def test_numbers_are_of_their_type(kind: Range, dtype: str) -> None:
    for shape in ((), (3, 4)):
        found = drawn(np.random.default_rng(0), shape, dtype, kind)
        assert found.shape == shape
        assert found.astype(dtype_of(dtype)).dtype == dtype_of(dtype)
    inner = drawn(np.random.default_rng(0), (99,), "float32", Range.INNER)
    assert (inner > 0).all()
    assert (inner < 1).all()


@pytest.mark.frameworks
def test_a_worker_tells_the_catalogue() -> None:
    with LocalPool([BUILT_IN["onnx-reference"]]) as pool:
        run = pool.ask("onnx-reference", ListOperators(opset=17))
    assert run.ok, run.message
    assert run.reply.operators == told_operators(17)
