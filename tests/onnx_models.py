"""ONNX models for tests, made with onnx.helper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


def value(name: str, shape: Sequence[Any] | None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def floats(numbers: Any) -> Any:
    return np.array(numbers, np.float32)


def constant(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Sequence[Any] = (),
    opset: int = 17,
    **more: Any,
) -> Any:
    graph = helper.make_graph(list(nodes), "net", list(inputs), list(outputs), list(constants))
    imports = [helper.make_opsetid("", opset), *more.pop("imports", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def saved(proto: Any, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    onnx.save(proto, str(path))
    return path


def convolution_net() -> Any:
    """Conv → Relu → MaxPool → Reshape by a computed shape → Gemm → Softmax, with a free batch."""
    rng = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> Any:
        return constant(name, (0.3 * rng.normal(size=shape)).astype(np.float32))

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"], name="relu"),
        node("MaxPool", ["r"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", ["p"], ["s"], name="shape", end=1),
        node("Constant", [], ["rest"], value=constant("", np.array([-1], np.int64))),
        node("Concat", ["s", "rest"], ["sizes"], name="sizes", axis=0),
        node("Reshape", ["p", "sizes"], ["f"], name="flat"),
        node("Gemm", ["f", "w2", "b2"], ["g"], name="gemm"),
        node("Softmax", ["g"], ["y"], name="soft", axis=-1),
    ]
    weights = [weight("w1", 4, 3, 3, 3), weight("b1", 4), weight("w2", 64, 10), weight("b2", 10)]
    inputs, outputs = [value("x", ["batch", 3, 8, 8])], [value("y", ["batch", 10])]
    return model(nodes, inputs, outputs, weights)


def branching_net() -> Any:
    """An If whose branches read what stands outside, constants and tensors."""
    node = helper.make_node
    then = helper.make_graph([node("Add", ["x", "k"], ["t"])], "then", [], [value("t", None)])
    other = helper.make_graph(
        [
            node("Constant", [], ["two"], value=constant("", np.float32(2))),
            node("Mul", ["h", "two"], ["e"]),
        ],
        "else",
        [],
        [value("e", None)],
    )
    nodes = [
        node("Relu", ["x"], ["h"], name="h"),
        node("ReduceSum", ["x"], ["sum"], name="sum", keepdims=0),
        node("Greater", ["sum", "zero"], ["positive"], name="positive"),
        node("If", ["positive"], ["y"], name="branch", then_branch=then, else_branch=other),
    ]
    constants = [constant("k", floats([10, 20])), constant("zero", np.float32(0))]
    return model(nodes, [value("x", [2, 2])], [value("y", [2, 2])], constants)


def function_net() -> Any:
    """A function that the model defines itself, with an attribute, called twice."""
    body = [
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Add", ["a", "one"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"]),
    ]
    body[2].attribute.append(
        onnx.AttributeProto(
            name="axis", ref_attr_name="along", type=onnx.AttributeProto.AttributeType.INT
        )
    )
    function = helper.make_function(
        "own", "Shifted", ["a"], ["c"], body, [helper.make_opsetid("", 17)], ["along"]
    )
    nodes = [
        helper.make_node("Shifted", ["x"], ["m"], domain="own", name="first", along=1),
        helper.make_node("Shifted", ["m"], ["y"], domain="own", name="second", along=0),
    ]
    return model(
        nodes,
        [value("x", ["n", 3])],
        [value("y", None)],
        functions=[function],
        imports=[helper.make_opsetid("own", 1)],
    )


def residual_net() -> Any:
    """Two convolutions with a normalisation and a skip, Flatten, Gemm, Tanh, MatMul, Softmax."""
    rng = np.random.default_rng(1)

    def weight(name: str, *shape: int) -> Any:
        return constant(name, (0.3 * rng.normal(size=shape)).astype(np.float32))

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "s", "b", "m", "v"], ["n"], name="norm"),
        node("Relu", ["n"], ["r"], name="relu"),
        node("Conv", ["r", "w2"], ["c2"], name="conv2", pads=[1, 1, 1, 1]),
        node("Add", ["c2", "r"], ["a"], name="add"),
        node("Elu", ["a"], ["e"], name="elu", alpha=0.5),
        node("AveragePool", ["e"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], ["f"], name="flat"),
        node("Gemm", ["f", "w3", "b3"], ["g"], name="gemm", transB=1),
        node("Tanh", ["g"], ["t"], name="tanh"),
        node("MatMul", ["t", "w4"], ["q"], name="matmul"),
        node("Softmax", ["q"], ["y"], name="soft"),
    ]
    weights = [
        *(weight("w1", 4, 2, 3, 3), weight("b1", 4), weight("s", 4), weight("b", 4)),
        *(weight("m", 4), constant("v", floats([1, 2, 0.5, 1])), weight("w2", 4, 4, 3, 3)),
        *(weight("w3", 6, 36), weight("b3", 6), weight("w4", 6, 3)),
    ]
    return model(nodes, [value("x", ["n", 2, 6, 6])], [value("y", ["n", 3])], weights)


def recurrent_net() -> Any:
    """An LSTM over steps before instances, its last state squeezed, and a MatMul; opset 13."""
    rng = np.random.default_rng(2)

    def weight(name: str, *shape: int) -> Any:
        return constant(name, (0.3 * rng.normal(size=shape)).astype(np.float32))

    node = helper.make_node
    nodes = [
        node("LSTM", ["x", "w", "r", "b"], ["", "h"], name="lstm", hidden_size=4),
        node("Squeeze", ["h", "axes"], ["s"], name="squeeze"),
        node("MatMul", ["s", "k"], ["m"], name="matmul"),
        node("Sigmoid", ["m"], ["g"], name="gate"),
        node("Mul", ["m", "g"], ["y"], name="mul"),
    ]
    weights = [
        *(weight("w", 1, 16, 3), weight("r", 1, 16, 4), weight("b", 1, 32), weight("k", 4, 5)),
        constant("axes", np.array([0], np.int64)),
    ]
    return model(nodes, [value("x", [7, 2, 3])], [value("y", [2, 5])], weights, opset=13)


def loop_net() -> Any:
    """A Loop whose state depends on an If inside and on constants outside."""
    node = helper.make_node
    up = helper.make_graph([node("Add", ["s", "k"], ["a"])], "up", [], [value("a", None)])
    down = helper.make_graph([node("Neg", ["s"], ["b"])], "down", [], [value("b", None)])
    body = helper.make_graph(
        [
            node("ReduceSum", ["s"], ["sum"], keepdims=0),
            node("Less", ["sum", "most"], ["few"]),
            node("If", ["few"], ["t"], then_branch=up, else_branch=down),
            node("Identity", ["go"], ["on"]),
        ],
        "body",
        [value("i", [], INT64), value("go", [], TensorProto.BOOL), value("s", [2, 3])],
        [value("on", [], TensorProto.BOOL), value("t", [2, 3])],
    )
    constants = [
        *(constant("times", np.array(4, np.int64)), constant("yes", np.array(True))),
        *(constant("k", floats([1, 2, 3])), constant("most", np.float32(20))),
    ]
    loop = node("Loop", ["times", "yes", "x"], ["y"], name="loop", body=body)
    return model([loop], [value("x", [2, 3])], [value("y", [2, 3])], constants)


def scan_net() -> Any:
    """A running sum by Scan, over as many steps as there are, then the largest."""
    node = helper.make_node
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["t"]), node("Identity", ["t"], ["out"])],
        "body",
        [value("s", [3]), value("e", [3])],
        [value("t", [3]), value("out", [3])],
    )
    scan = node("Scan", ["zero", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1)
    most = node("ReduceMax", ["all"], ["y"], name="most", axes=[0], keepdims=0)
    outputs = [value("last", [3]), value("y", [3])]
    return model(
        [scan, most], [value("x", ["steps", 3])], outputs, [constant("zero", floats([0] * 3))]
    )


NETS = {
    "convolutions": convolution_net,
    "a skip": residual_net,
    "steps before instances": recurrent_net,
    "branches": branching_net,
    "functions": function_net,
}
