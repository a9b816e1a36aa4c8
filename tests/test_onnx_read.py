"""ONNX files as plain data and back: nothing is lost, and nothing hostile is believed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import onnx_models as made
from onnx_models import constant, floats, model, value
from outvote.core.arrays import TEXT
from outvote.core.blobs import BlobStore
from outvote.core.model import Model, Ref
from outvote.dialects.onnx.nouns.node import origin_of
from outvote.dialects.onnx.nouns.types import CODES, carrier, dtype_of, from_raw, raw_bytes
from outvote.dialects.onnx.workers.shared.assemble import assemble
from outvote.dialects.onnx.workers.shared.parse import external_files
from outvote.dialects.onnx.workers.shared.read import ReadModel, read
from outvote.worker.main import Refused


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def read_back(proto: Any, blobs: BlobStore, **dims: int) -> ReadModel:
    """The model read from a file, once over the wire."""
    found = read("model.onnx", proto.SerializeToString(), blobs, dims, {})
    return ReadModel(Model.from_json(found.model.to_json()), found.output_shapes, found.specs)


def same_results(proto: Any, again: Any, *inputs: Any) -> None:
    first, second = ReferenceEvaluator(proto), ReferenceEvaluator(again)
    names = (first.input_names, second.input_names)
    a, b = (
        evaluator.run(None, dict(zip(keys, inputs, strict=True)))
        for evaluator, keys in zip((first, second), names, strict=True)
    )
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_nodes_become_layers_and_constants_their_weights(blobs: BlobStore) -> None:
    found = read_back(made.convolution_net(), blobs).model
    assert [(layer.name, layer.kind) for layer in found.layers[:3]] == [
        ("conv", "Conv"),
        ("relu", "Relu"),
        ("pool", "MaxPool"),
    ]
    conv = found.layers[0]
    assert conv.config == {"pads": [1, 1, 1, 1]}
    assert [weight.name for weight in conv.weights] == ["w1", "b1"]
    assert conv.args == [{"$ref": ["x", 0]}, {"$weight": 0}, {"$weight": 1}]
    # A Constant node is a weight of who reads it: alone, that node still has a constant.
    assert found.layer("sizes").args == [{"$ref": ["shape", 0]}, {"$weight": 0}]
    assert origin_of(conv).opset == {"": 17}
    assert found.dialect == "onnx"


def test_the_batch_is_followed_through_the_graph(blobs: BlobStore) -> None:
    found = read_back(made.convolution_net(), blobs).model
    assert (found.inputs[0].shape, found.inputs[0].batch) == ((None, 3, 8, 8), 0)
    given = {layer.name: layer.batch for layer in found.layers}
    assert given["conv"] == (0,)
    assert given["shape"] == (None,)
    assert given["soft"] == (0,)


def test_a_model_of_one_instance_takes_one_at_a_time(blobs: BlobStore) -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    proto = model([relu], [value("x", [1, 3])], [value("y", [1, 3])])
    assert read_back(proto, blobs).model.inputs[0].batch == 0


def test_tensors_without_a_batch_say_so(blobs: BlobStore) -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    inputs = [value("x", ["n", 3]), value("w", [3, 2])]
    found = read_back(model([node], inputs, [value("y", ["n", 2])]), blobs).model
    assert [item.batch for item in found.inputs] == [0, None]
    summed = helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)
    proto = model([summed], [value("x", ["n", 3])], [value("y", [])])
    assert read_back(proto, blobs).model.inputs[0].batch is None


def test_free_dimensions_are_set_by_name(blobs: BlobStore) -> None:
    found = read_back(made.convolution_net(), blobs, batch=4)
    assert found.model.inputs[0].shape == (4, 3, 8, 8)
    assert found.output_shapes == [[4, 10]]
    with pytest.raises(Refused, match="no dimension 'btach'; free are batch"):
        read_back(made.convolution_net(), blobs, btach=4)


NETS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "convolution": (made.convolution_net, (2, 3, 8, 8)),
    "branching": (made.branching_net, (2, 2)),
    "function": (made.function_net, (2, 3)),
    "loop": (made.loop_net, (2, 3)),
    "scan": (made.scan_net, (5, 3)),
}


@pytest.mark.parametrize("name", NETS)
def test_a_model_that_was_read_computes_the_same(name: str, blobs: BlobStore) -> None:
    build, shape = NETS[name]
    proto = build()
    again = assemble(read_back(proto, blobs).model, blobs).proto
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        x = (sign * np.abs(rng.normal(size=shape))).astype(np.float32)
        same_results(proto, again, x)
    onnx.checker.check_model(typed(again, proto))


def typed(proto: Any, told: Any) -> Any:
    """A graph whose outputs say their types: as inferred, or as the file told them."""
    found = onnx.shape_inference.infer_shapes(proto)
    for output, known in zip(found.graph.output, told.graph.output, strict=True):
        if not output.type.tensor_type.HasField("shape"):
            output.type.CopyFrom(known.type)
    return found


def test_what_a_sub_graph_reads_from_outside_is_an_argument(blobs: BlobStore) -> None:
    found = read_back(made.branching_net(), blobs).model
    branch = found.layer("branch")
    assert set(branch.kwargs) == {"x", "h"}
    assert set(branch.refs()) == {Ref("positive"), Ref("x"), Ref("h")}
    inner = branch.config["then_branch"]["$graph"]
    assert set(inner["initializers"]) == {"k"}


def test_functions_go_with_the_nodes_that_call_them(blobs: BlobStore) -> None:
    found = read_back(made.function_net(), blobs).model
    assert [layer.kind for layer in found.layers] == ["own::Shifted", "own::Shifted"]
    assert [f["name"] for f in origin_of(found.layers[1]).functions] == ["Shifted"]


def test_missing_arguments_and_outputs_keep_their_places(blobs: BlobStore) -> None:
    nodes = [
        helper.make_node("Clip", ["x", "", "most"], ["c"], name="clip"),
        helper.make_node("TopK", ["c", "k"], ["", "i"], name="top"),
    ]
    constants = [constant("most", np.float32(1)), constant("k", np.array([1], np.int64))]
    proto = model(nodes, [value("x", [4])], [value("i", [1], made.INT64)], constants)
    found = read_back(proto, blobs).model
    assert found.layer("clip").args[1] is None
    assert origin_of(found.layer("top")).outputs == (1,)
    again = assemble(found, blobs).proto
    assert [list(node.input) for node in again.graph.node] == [["x", "", "most"], ["clip", "k"]]
    assert list(again.graph.node[1].output) == ["", "top"]


def test_names_that_clash_get_others(blobs: BlobStore) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="same"),
        helper.make_node("Abs", ["a"], ["b"], name="same"),
        helper.make_node("Neg", ["b"], ["y"], name="x"),
    ]
    proto = model(nodes, [value("x", [2])], [value("y", [2])])
    found = read_back(proto, blobs).model
    assert [layer.name for layer in found.layers] == ["same", "same#2", "x#2"]
    same_results(proto, assemble(found, blobs).proto, floats([-1, 2]))


def test_attributes_keep_their_types(blobs: BlobStore) -> None:
    node = helper.make_node("Odd", ["x"], ["y"], domain="own", i=3, f=0.5, s="text", fs=[1.0, 2.0])
    more = [
        helper.make_attribute("nothing", [], attr_type=onnx.AttributeProto.AttributeType.INTS),
        helper.make_attribute("raw", b"\xff\x00"),
        helper.make_attribute("texts", ["a", "b"]),
        helper.make_attribute("table", constant("t", np.arange(3))),
    ]
    node.attribute.extend(more)
    proto = model(
        [node], [value("x", [2])], [value("y", [2])], imports=[helper.make_opsetid("own", 1)]
    )
    found = read_back(proto, blobs).model
    (again,) = assemble(found, blobs).proto.graph.node
    told = {attribute.name: attribute for attribute in again.attribute}
    for attribute in node.attribute:
        assert told[attribute.name].type == attribute.type, attribute.name
    assert told["raw"].s == b"\xff\x00"
    assert list(told["fs"].floats) == [1.0, 2.0]
    assert onnx.numpy_helper.to_array(told["table"].t).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", sorted(CODES.keys() - {TEXT}))
def test_every_type_survives_as_a_constant(name: str, blobs: BlobStore) -> None:
    numbers = np.array([0, 1, 1]) if name in ("bool", "uint2") else np.array([0, 1, -2, 2, 1])
    if name.startswith("u"):
        numbers = np.abs(numbers)
    if name == "float8_e8m0fnu":  # powers of two alone
        numbers = np.array([1, 2, 4])
    if name == "int2":
        numbers = np.array([0, 1, -2, -1, 1])
    exact = numbers.astype(dtype_of(name))
    tensor = TensorProto(
        name="k", dims=[len(numbers)], data_type=CODES[name], raw_data=raw_bytes(exact, name)
    )
    np.testing.assert_array_equal(
        from_raw(raw_bytes(exact, name), name, exact.shape).astype(float), numbers
    )
    node = helper.make_node("Identity", ["k"], ["y"])
    proto = model([node], [], [value("y", [len(numbers)], CODES[name])], [tensor])
    found = read_back(proto, blobs).model
    (again,) = assemble(found, blobs).proto.graph.initializer
    assert (again.data_type, again.raw_data) == (CODES[name], tensor.raw_data)
    (weight,) = found.layers[0].weights
    assert blobs.get(weight.digest).dtype == carrier(name)


def test_large_weights_stay_in_the_blob(blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outvote.dialects.onnx.workers.shared.assemble._INLINE_BYTES", 64)
    monkeypatch.setattr("outvote.dialects.onnx.workers.shared.assemble._SMALL_BYTES", 16)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, 4)).astype(ml_dtypes.bfloat16)
    tensor = TensorProto(name="w", dims=[4, 4], data_type=16, raw_data=weight.tobytes())
    big = constant("v", rng.normal(size=(4, 4)).astype(np.float32))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Abs", ["v"], ["z"])]
    proto = model(
        nodes, [value("x", [1, 4], 16)], [value("y", [1, 4], 16), value("z", [4, 4])], [tensor, big]
    )
    graph = assemble(read_back(proto, blobs).model, blobs)
    assert graph.external
    with graph.stored(blobs.folder) as path:
        assert isinstance(path, Path)
        loaded = onnx.load(str(path))
    assert not path.exists()
    by_name = {t.name: onnx.numpy_helper.to_array(t) for t in loaded.graph.initializer}
    np.testing.assert_array_equal(by_name["w"].astype(float), weight.astype(float))
    np.testing.assert_array_equal(by_name["v"], onnx.numpy_helper.to_array(big))


def external(
    location: str, length: Any = 16, offset: Any = 0, dims: Any = (4,), kind: int = made.FLOAT
) -> Any:
    """A model whose weight lies in another file."""
    tensor = TensorProto(name="w", dims=dims, data_type=kind)
    tensor.data_location = TensorProto.EXTERNAL
    for key, told in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(told))
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    return model([node], [value("x", [4])], [value("y", [4])], [tensor])


def test_external_data_is_told_and_read(blobs: BlobStore) -> None:
    proto = external("w.bin", offset=4)
    assert external_files(proto) == ("w.bin",)
    beside = np.frombuffer(b"skip" + np.arange(4, dtype=np.float32).tobytes(), np.uint8)
    found = read("model.onnx", proto.SerializeToString(), blobs, {}, {"w.bin": beside}).model
    (weight,) = found.layer("add").weights
    np.testing.assert_array_equal(blobs.get(weight.digest), [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("location", "length", "told"),
    [
        ("missing.bin", 16, "was not given"),
        ("short.bin", 16, "does not hold them"),
        ("w.bin", 8, "does not hold them"),
    ],
)
def test_external_data_cannot_lie_about_its_size(
    location: str, length: int, told: str, blobs: BlobStore
) -> None:
    beside = {"short.bin": np.zeros(8, np.uint8), "w.bin": np.zeros(16, np.uint8)}
    with pytest.raises(Refused, match=told):
        read("model.onnx", external(location, length).SerializeToString(), blobs, {}, beside)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"offset": "abc"}, "invalid literal for int"),
        ({"offset": -4}, "offset must be non-negative|does not hold them at -4"),
        ({"length": -16}, "length must be non-negative|does not hold them"),
        ({"offset": 1 << 63}, "does not hold them at 9,223,372,036,854,775,808"),
        ({"dims": (1 << 40, 1 << 40)}, "does not hold them"),
        ({"dims": (-4,)}, r"has the shape \[-4\]"),
        ({"kind": TensorProto.STRING}, "holds texts in another file"),
        ({"kind": 999}, "999 is not a valid DataType"),
    ],
)
def test_external_data_that_cannot_be_is_refused_in_a_sentence(
    more: dict[str, Any], told: str, blobs: BlobStore
) -> None:
    content = external("w.bin", **more).SerializeToString()
    with pytest.raises(Refused, match=told):
        read("model.onnx", content, blobs, {}, {"w.bin": np.zeros(16, np.uint8)})


def test_a_size_of_minus_one_is_free(blobs: BlobStore) -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    proto = model([relu], [value("x", [-1, 3])], [value("y", [-1, 3])])
    (found,) = read_back(proto, blobs).model.inputs
    assert (found.shape, found.batch) == ((None, 3), 0)


def nested(depth: int) -> Any:
    flat = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "g", [], [value("t", None)])
    inner = flat
    for _ in range(depth):
        node = helper.make_node("If", ["c"], ["t"], then_branch=inner, else_branch=flat)
        inner = helper.make_graph([node], "g", [], [value("t", None)])
    return inner


def huge() -> Any:
    tensor = TensorProto(name="w", dims=[1 << 20, 1 << 20], data_type=made.FLOAT, raw_data=b"1234")
    node = helper.make_node("Relu", ["w"], ["y"])
    return model([node], [], [value("y", None)], [tensor])


def sparse() -> Any:
    dense = constant("w", floats([1.0]))
    tensor = helper.make_sparse_tensor(dense, constant("i", np.array([2])), [4])
    proto = model([helper.make_node("Relu", ["w"], ["y"])], [], [value("y", [4])])
    proto.graph.sparse_initializer.append(tensor)
    return proto


def sequence() -> Any:
    info = helper.make_tensor_sequence_value_info("x", made.FLOAT, None)
    node = helper.make_node("SequenceLength", ["x"], ["y"])
    return model([node], [info], [value("y", [], made.INT64)])


def optional() -> Any:
    held = helper.make_tensor_type_proto(made.FLOAT, [2])
    info = helper.make_value_info("x", helper.make_optional_type_proto(held))
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    return model([node], [info], [value("y", [], TensorProto.BOOL)])


def zip_map() -> Any:
    """What scikit-learn's classifiers become: a sequence of maps from label to probability."""
    node = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_int64s=[0, 1])
    held = helper.make_map_type_proto(made.INT64, helper.make_tensor_type_proto(made.FLOAT, []))
    output = helper.make_value_info("z", helper.make_sequence_type_proto(held))
    imports = [helper.make_opsetid("ai.onnx.ml", 1)]
    return model([node], [value("x", ["n", 2])], [output], imports=imports)


def holding(**fields: Any) -> Any:
    """A graph that reads a constant with these fields."""
    node = helper.make_node("Identity", ["w"], ["y"])
    return model([node], [], [value("y", None)], [TensorProto(name="w", **fields)])


def one(operator: str, inputs: Any, **attributes: Any) -> Any:
    node = helper.make_node(operator, [item.name for item in inputs], ["y"], **attributes)
    return model([node], inputs, [value("y", None)])


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "huge": (huge, "announces 1,099,511,627,776 numbers and does not hold them"),
    "sparse": (sparse, "sparse tensors, which are not supported"),
    "sequence": (sequence, "the input 'x' is a sequence of tensors; only tensors"),
    "sequence of maps": (zip_map, "the output 'z' is a sequence of maps; only tensors"),
    "texts": (
        lambda: holding(dims=[1 << 40], data_type=TensorProto.STRING, string_data=[b"a"]),
        "announces 1,099,511,627,776 texts and does not hold them",
    ),
    "beyond 64 bits": (
        lambda: holding(dims=[1 << 62, 1 << 62], data_type=made.FLOAT, raw_data=b"1234"),
        "and does not hold them",
    ),
    "another field": (
        lambda: holding(dims=[2], data_type=made.FLOAT, int32_data=[1, 2]),
        "could not be read: Unsupported dtype FLOAT for int32_data",
    ),
    "a ring": (
        lambda: model(
            [helper.make_node("Relu", ["y"], ["t"]), helper.make_node("Relu", ["t"], ["y"])],
            [value("x", [1])],
            [value("y", [1])],
        ),
        "'y', which nothing computes before it",
    ),
    "two nodes for one tensor": (
        lambda: model(
            [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])],
            [value("x", [1])],
            [value("y", [1])],
        ),
        "redeclared",
    ),
    "optional": (optional, "the input 'x' is an optional; only tensors"),
    "complex": (
        lambda: one("Identity", [value("x", [1], TensorProto.COMPLEX64)]),
        "of type complex64, which is not supported",
    ),
    "no shape": (lambda: one("Relu", [value("x", None)]), "has no shape"),
    "no operator": (lambda: one("a::b", [value("x", [1])]), "no name of an operator"),
    "deep": (
        lambda: model(
            nested(20).node, [value("x", [1]), value("c", [], TensorProto.BOOL)], [value("t", [1])]
        ),
        "nested more than 16 deep",
    ),
    "nothing computes it": (
        lambda: model(
            [helper.make_node("Relu", ["ghost"], ["y"])], [value("x", [1])], [value("y", [1])]
        ),
        "ghost",
    ),
    "no output": (
        lambda: model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])], []),
        "the graph has no output",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_is_refused_in_a_sentence(name: str, blobs: BlobStore) -> None:
    build, told = HOSTILE[name]
    with pytest.raises(Refused) as error:
        read("model.onnx", build().SerializeToString(), blobs, {}, {})
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"\x00\x01garbage", b"\x08\x08", b"PK\x03\x04" + bytes(64)])
def test_a_file_that_is_no_model_is_refused(content: bytes, blobs: BlobStore) -> None:
    with pytest.raises(Refused, match=r"model.onnx is not (a readable|an) ONNX"):
        read("model.onnx", content, blobs, {}, {})
