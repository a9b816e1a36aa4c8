"""What the worker around a runtime of ONNX does: batches, hidden tensors, single nodes, rounding.

It runs here, in this process, around ONNX' reference; what it gives is held against that library
asked directly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper
from onnx.reference import ReferenceEvaluator

import onnx_models as made
from onnx_here import NAME, Here
from onnx_models import NETS, constant, floats, model, value
from outvote.core import protocol as ask
from outvote.core.arrays import Array
from outvote.core.case import random_data
from outvote.core.model import Model
from outvote.core.states import State
from outvote.core.target import Outcome
from outvote.dialects.onnx.nouns.operators import ListOperators
from outvote.dialects.onnx.nouns.requests import AttemptNode, InferForms
from outvote.worker.jitter import moved

FREE = ("convolutions", "a skip")  # in how many instances they are given


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    return Here(tmp_path_factory.mktemp("worker"))


@pytest.fixture(scope="module")
def models(here: Here) -> dict[str, Model]:
    return {name: here.read(net()).model for name, net in NETS.items()}


def inputs_of(model: Model, count: int = 5) -> list[Array]:
    return list(random_data(model, count, 0).inputs)


def by_onnx(name: str, inputs: list[Array]) -> list[Array]:
    evaluator = ReferenceEvaluator(NETS[name]())
    fed = dict(zip(evaluator.input_names, inputs, strict=True))
    return [np.asarray(found) for found in evaluator.run(None, fed)]


# Whole models


@pytest.mark.parametrize("name", NETS)
def test_a_model_gives_what_the_library_gives_for_its_file(
    here: Here, models: dict[str, Model], name: str
) -> None:
    inputs = inputs_of(models[name])
    found = here.run(models[name], inputs).outputs.arrays
    for got, right in zip(found, by_onnx(name, inputs), strict=True):
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("batch", [1, 2, 3, 5, 64])
def test_batches_are_put_together_in_order(
    here: Here, models: dict[str, Model], name: str, batch: int
) -> None:
    inputs = inputs_of(models[name])
    found = here.run(models[name], inputs, batch=batch).outputs.arrays
    np.testing.assert_allclose(found[0], by_onnx(name, inputs)[0], rtol=1e-5)
    assert here.context.done == here.context.total == -(-5 // batch), "progress is told"


def test_a_model_of_one_instance_is_run_once_for_each(here: Here) -> None:
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    flat = helper.make_node("Reshape", ["y", "one"], ["z"])
    one = constant("one", np.array([1], np.int64))
    found = here.read(model([node, flat], [value("x", [1, 2])], [value("z", [1])], [one])).model
    given_ = floats([[1, 2], [3, 4], [5, 6]])
    assert here.run(found, [given_]).outputs.arrays[0].tolist() == [3, 7, 11]


def test_where_instances_cannot_be_told_apart_all_are_run_at_once(here: Here) -> None:
    """A sum over the batch: in parts it would be another number."""
    node = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    found = here.read(model([node], [value("x", ["n", 2])], [value("y", [])])).model
    (total,) = here.run(found, [np.ones((5, 2), np.float32)], batch=2).outputs.arrays
    assert total == 10


def test_an_empty_batch_is_run(here: Here, models: dict[str, Model]) -> None:
    empty = np.zeros((0, 3), np.float32)
    node = helper.make_node("Relu", ["x"], ["y"])
    found = here.read(model([node], [value("x", ["n", 3])], [value("y", ["n", 3])])).model
    assert here.run(found, [empty]).outputs.arrays[0].shape == (0, 3)


@pytest.mark.parametrize("name", NETS)
def test_hidden_tensors_are_those_of_the_single_nodes(
    here: Here, models: dict[str, Model], name: str
) -> None:
    """Every node alone, on what the nodes before it gave, gives what the whole graph shows."""
    found, inputs = models[name], inputs_of(models[name], 2)
    names = tuple(layer.name for layer in found.layers)
    watched = here.run(found, inputs, watch=names, rows=99).watched
    fed = here.fed(found, inputs)
    here.reply(ask.OpenSession(model=found, inputs=fed))
    held: dict[str, tuple[State, ...]] = {
        item.name: (state,) for item, state in zip(found.inputs, fed, strict=True)
    }
    for layer in found.layers:
        told = tuple(held[ref.producer][ref.index] for ref in layer.refs())
        stepped = here.reply(ask.StepLayer(layer=layer.name, given=told))
        called = here.reply(ask.CallLayer(layer=layer.name, given=told))
        assert stepped.own is not None
        assert stepped.isolated is not None
        held[layer.name] = stepped.own
        for states in (watched[layer.name], stepped.isolated, called.outputs):
            for one, own in zip(states, stepped.own, strict=True):
                np.testing.assert_array_equal(one.array, own.array, err_msg=layer.name)
                assert (one.dtype, one.batch) == (own.dtype, own.batch)
    here.reply(ask.CloseSession())


def test_of_hidden_tensors_come_as_many_rows_as_are_asked_for(
    here: Here, models: dict[str, Model]
) -> None:
    found = models["a skip"]
    shown = here.run(found, inputs_of(found), watch=("relu",), rows=2).watched["relu"]
    assert shown[0].array.shape[0] == 2


# Single nodes that fail


def failing_net() -> Any:
    """A Reshape that no tensor fits, behind a Relu and before a Tanh."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Reshape", ["r", "size"], ["s"], name="unfit"),
        helper.make_node("Tanh", ["s"], ["y"], name="tanh"),
    ]
    size = constant("size", np.array([7, 7], np.int64))
    return model(nodes, [value("x", [2, 3])], [value("y", None)], [size])


def test_a_node_that_fails_is_named_and_those_around_it_are_computed(here: Here) -> None:
    found = here.read(failing_net()).model
    fed = here.fed(found, [np.ones((2, 3), np.float32)])
    assert here.asked(found, [fed[0].array]).outcome is Outcome.ERROR
    here.reply(ask.OpenSession(model=found, inputs=fed))
    assert here.reply(ask.StepLayer(layer="relu")).own is not None
    failed = here.ask(NAME, ask.StepLayer(layer="unfit"))
    assert (failed.outcome, failed.layer) == (Outcome.ERROR, "unfit")
    behind = here.reply(ask.StepLayer(layer="tanh", given=fed))
    assert behind.own is None
    assert "unfit" in behind.own_error, "its own tensors end at that node"
    assert behind.isolated is not None
    np.testing.assert_allclose(behind.isolated[0].array, np.tanh(fed[0].array))


def test_an_operator_that_the_library_lacks_is_a_gap(here: Here) -> None:
    node = helper.make_node("NoSuchThing", ["x"], ["y"], domain="own.domain")
    imports = [helper.make_opsetid("own.domain", 1)]
    proto = model([node], [value("x", [2])], [value("y", None)], imports=imports)
    found = here.read(proto).model
    run = here.asked(found, [floats([1, 2])])
    assert run.outcome is Outcome.UNSUPPORTED, run.message


# Files


@pytest.mark.parametrize("name", NETS)
def test_a_model_that_is_saved_and_read_again_is_the_same(
    here: Here, models: dict[str, Model], name: str
) -> None:
    saved = here.reply(ask.Save(model=models[name]))
    content = here.blobs.get(saved.file.digest).tobytes()
    onnx.checker.check_model(onnx.load_model_from_string(content))
    again = here.reply(ask.Read(file=saved.file, dims={}))
    inputs = inputs_of(models[name], 2)
    first, second = (here.run(one, inputs).outputs.arrays for one in (models[name], again.model))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    if name == "branches":  # names inside a sub-graph get that of their node in front each time
        return
    twice = here.reply(ask.Save(model=again.model))
    assert here.blobs.get(twice.file.digest).tobytes() == content


def test_the_files_that_hold_weights_are_listed(here: Here) -> None:
    proto = made.convolution_net()
    for number, tensor in enumerate(proto.graph.initializer[:2]):
        onnx.external_data_helper.set_external_data(tensor, f"part{number}.bin")
        tensor.ClearField("raw_data")
    digest = here.blobs.put(np.frombuffer(proto.SerializeToString(), np.uint8))
    listed = here.reply(ask.ListParts(file=ask.File("model.onnx", digest)))
    assert sorted(listed.names) == ["part0.bin", "part1.bin"]


def test_garbage_is_refused_with_the_name_of_the_file(here: Here) -> None:
    digest = here.blobs.put(np.frombuffer(b"\xff" * 40, np.uint8))
    for request in (
        ask.Read(file=ask.File("mine.onnx", digest), dims={}),
        ask.ListParts(file=ask.File("mine.onnx", digest)),
    ):
        run: Any = here.ask(NAME, request)
        assert run.refused
        assert "mine.onnx" in run.message


# What is told without running


@pytest.mark.parametrize("name", NETS)
def test_inferred_forms_are_those_of_what_is_computed(
    here: Here, models: dict[str, Model], name: str
) -> None:
    found = models[name]
    forms = here.reply(InferForms(model=found))
    shown = here.run(found, inputs_of(found, 3), watch=tuple(forms.specs), rows=99).watched
    told = {layer: kinds for layer, kinds in forms.specs.items() if kinds}
    assert len(told) >= len(found.layers) - 2, "inference follows nearly all nodes"
    for layer, kinds in told.items():
        for (shape, dtype), state, batch in zip(
            kinds, shown[layer], forms.batch[layer], strict=True
        ):
            assert state.dtype == dtype
            sizes = [None if axis == batch else n for axis, n in enumerate(state.array.shape)]
            assert sizes == [None if axis == batch else n for axis, n in enumerate(shape)]


def test_a_model_that_onnx_refuses_has_no_forms(here: Here, models: dict[str, Model]) -> None:
    node = helper.make_node("Concat", ["x", "x"], ["y"], name="c", axis=5)
    found = here.read(model([node], [value("x", [2, 3])], [value("y", None)])).model
    run = here.ask(NAME, InferForms(model=found))
    assert run.refused
    assert "axis" in run.message


def test_defaults_are_those_of_the_schemas(here: Here, models: dict[str, Model]) -> None:
    told = here.reply(ask.TellDefaults(model=models["a skip"])).defaults
    assert told["elu"]["alpha"] == 1.0, "not the 0.5 that the node has"
    assert told["gemm"]["transB"] == 0
    assert told["relu"] == {}


def test_nodes_that_should_be_refused_are_run_on_ones(here: Here) -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], name="s", axis=9)
    found = here.read(model([node], [value("x", [2, 3])], [value("y", None)])).model
    run = here.ask(NAME, AttemptNode(model=found))
    assert run.outcome is Outcome.ERROR
    legal = here.read(made.recurrent_net()).model
    assert here.reply(AttemptNode(model=legal)).shapes == [[2, 5]]


def test_operators_are_listed_with_why_they_are_not_drawn(here: Here) -> None:
    listed = here.reply(ListOperators(opset=17)).operators
    assert listed["Relu"].not_drawn == ""
    assert listed["Loop"].not_drawn
    assert listed["Softmax"].attribute("axis") is not None
    assert listed["Softmax"].attribute("no_such") is None


def test_a_worker_says_what_it_is(here: Here) -> None:
    hello = here.worker.describe()
    assert hello.versions == {"onnx": onnx.__version__, "numpy": np.__version__}


# Rounding

TENSORS = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.float16]),
    hnp.array_shapes(max_dims=2, max_side=4),
    elements=st.floats(-1000, 1000, width=16),
)


@settings(max_examples=25)
@given(TENSORS, st.integers(0, 5))
def test_rounding_moves_numbers_by_a_last_place_and_leaves_zeros(x: Any, seed: int) -> None:
    tensor = State(x)
    found = moved(tensor, seed).array
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    assert not np.any(found[x == 0])
    wide = x.astype(float)
    step = 2 * np.finfo(x.dtype).eps * (np.abs(wide) + np.abs(wide).mean())
    assert np.all(np.abs(found.astype(float) - wide) <= step + np.finfo(x.dtype).tiny)
    np.testing.assert_array_equal(found, moved(tensor, seed).array)


def test_what_is_not_a_finite_fraction_is_not_moved() -> None:
    odd = floats([np.nan, np.inf, -np.inf, 1])
    found = moved(State(odd), 3).array
    np.testing.assert_array_equal(found[:3], odd[:3])
    assert found[3] != 1
    whole = np.arange(4)
    assert moved(State(whole), 3).array is whole
    empty = np.zeros((0, 2), np.float32)
    assert moved(State(empty), 3).array is empty


def test_a_whole_run_with_rounding_is_repeatable_and_near(
    here: Here, models: dict[str, Model]
) -> None:
    found, inputs = models["a skip"], inputs_of(models["a skip"])
    plain = here.run(found, inputs).outputs.arrays[0]
    first, again, other = (
        here.run(found, inputs, jitter=seed).outputs.arrays[0] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    assert 0 < np.abs(first - plain).max() < 1e-4
    assert here.context.total == len(found.layers), "every node is a step"


def test_blobs_of_another_folder_are_not_there(here: Here, tmp_path: Path) -> None:
    other = Here(tmp_path)
    digest = here.blobs.put(floats([1, 2, 3]))
    found = here.read(made.function_net()).model
    assert not other.ask(NAME, ask.RunModel(model=found, inputs=(digest,), batch=1)).ok
