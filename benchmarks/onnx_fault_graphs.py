"""The graphs that faults of onnx_faults.py are planted for: networks with one guilty part.

A part is a list of steps, each an operator on what the step before it gives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

from onnx_faults_clean import exported
from outvote.dialects.keras.zoo.seeds import seed_file


@dataclass(frozen=True)
class Step:
    """An operator behind another; `more` are constants that it reads too, None is left out."""

    kind: str
    more: Sequence[Any] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


def step(kind: str, *more: Any, **attributes: Any) -> Step:
    return Step(kind, more, attributes)


def weight(*shape: int, seed: int = 1) -> Any:
    """Random numbers that keep tensors at their size."""
    fan = max(1, int(np.prod(shape[1:])))
    found = np.random.default_rng(seed).normal(size=shape) / fan**0.5
    return found.astype(np.float32)


def whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def graph(shape: Sequence[Any], steps: Sequence[Step], opset: int = 17) -> Any:
    """A chain of steps, from an input `x` with a free batch."""
    nodes, constants, last = [], [], "x"
    for place, one in enumerate(steps):
        name = f"{one.kind.lower()}_{place}"
        read = [last]
        for number, array in enumerate(one.more):
            held = "" if array is None else f"{name}.{number}"
            read.append(held)
            if array is not None:
                constants.append(numpy_helper.from_array(array, held))
        made = [name, f"{name}.1"] if one.kind == "TopK" else [name]
        nodes.append(helper.make_node(one.kind, read, made, name=name, **one.attributes))
        last = name
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    net = helper.make_graph(nodes, "net", [x], [y], constants)
    imports = [helper.make_opsetid("", opset)]
    found = shape_inference.infer_shapes(
        helper.make_model(net, opset_imports=imports, ir_version=8), strict_mode=True
    )
    del found.graph.value_info[:]
    return found


def image_net(*guilty: Step, opset: int = 17) -> Any:
    """Convolutions and normalisation, the guilty part on (n, 4, 8, 8), and a classifier."""
    norm = [np.abs(weight(4, seed=n)) + 0.5 for n in range(4)]
    front = [
        step("Conv", weight(4, 3, 3, 3), weight(4), pads=[1, 1, 1, 1]),
        step("BatchNormalization", *norm, epsilon=1e-5),
        step("Relu"),
        step("Conv", weight(4, 4, 1, 1), weight(4, seed=2)),
    ]
    back = [
        step("Mul", weight(1, seed=5)),
        step("ReduceMean", axes=[2], keepdims=0) if opset < 18 else step("Sigmoid"),
        step("Flatten"),
        step("Sigmoid"),
    ]
    return graph((3, 8, 8), [*front, *guilty, *back], opset)


def sequence_net(*guilty: Step, opset: int = 17) -> Any:
    """A projection, the guilty part on (n, 4, 6), and a feed-forward layer behind it."""
    front = [
        step("MatMul", weight(5, 6)),
        step("Add", weight(6)),
        step("LayerNormalization", np.abs(weight(6)) + 0.5, weight(6, seed=3), epsilon=1e-5),
    ]
    back = [step("Mul", weight(1, seed=5)), step("Flatten"), step("Softplus")]
    return graph((4, 5), [*front, *guilty, *back], opset)


def vector_net(*guilty: Step) -> Any:
    """Dense layers, the guilty part on (n, 6)."""
    front = [step("Gemm", weight(10, 6), weight(6)), step("Sigmoid"), step("Sub", weight(6))]
    return graph((10,), [*front, *guilty, step("Mul", weight(1, seed=5)), step("Softplus")])


@cache
def zoo_net(name: str) -> Any:
    """A trained model of the zoo, as PyTorch exports it."""
    with tempfile.TemporaryDirectory() as folder:
        return onnx.load(exported(seed_file(name)[0], Path(folder)))


def recurrent_net(kind: str, gates: int, **attributes: Any) -> Any:
    """A recurrent layer over sequences (n, 4, 5), read by a projection."""
    hidden = 3
    weights = [weight(1, gates * hidden, 5), weight(1, gates * hidden, hidden, seed=2)]
    bias = weight(1, 2 * gates * hidden, seed=3)
    steps = [
        step("Sigmoid"),
        step("Transpose", perm=[1, 0, 2]),
        step(kind, *weights, bias, hidden_size=hidden, **attributes),
        step("Squeeze", whole(1)),
        step("Transpose", perm=[1, 0, 2]),
        step("MatMul", weight(hidden, 2)),
        step("Flatten"),
    ]
    return graph((4, 5), steps)
