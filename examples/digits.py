"""Trains a small convolutional network on scikit-learn's digits, in seconds, for the demo.

    python examples/digits.py FOLDER

writes FOLDER/digits.keras, the same network as FOLDER/digits.onnx, and FOLDER/digits.npz (the test
set: x and y).
"""

import importlib.util
import os
import sys
from pathlib import Path

for backend in ("torch", "jax", "tensorflow"):
    if importlib.util.find_spec(backend):
        os.environ.setdefault("KERAS_BACKEND", backend)
        break

import keras
import numpy as np
import onnx
from keras import layers
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def network() -> keras.Model:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv1"),
            layers.BatchNormalization(momentum=0.9, name="norm1"),
            layers.ReLU(name="relu1"),
            layers.AveragePooling2D(2, name="pool1"),
            layers.Conv2D(32, 3, padding="same", use_bias=False, name="conv2"),
            layers.BatchNormalization(momentum=0.9, name="norm2"),
            layers.ReLU(name="relu2"),
            layers.Flatten(name="flatten"),
            layers.Dense(10, activation="softmax", name="digit"),
        ],
        name="digits",
    )


def as_onnx(model: keras.Model) -> onnx.ModelProto:
    """The trained network as an ONNX graph: channels come before rows and columns there."""
    constants, nodes = [], []

    def constant(name: str, array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(kind: str, name: str, *inputs: str, **attributes: object) -> None:
        before = nodes[-1].output[0] if nodes else "x"
        given = [before, *inputs]
        nodes.append(helper.make_node(kind, given, [name], name=name, **attributes))

    add("Transpose", "channels_first", perm=[0, 3, 1, 2])
    for n in (1, 2):
        (kernel,) = model.get_layer(f"conv{n}").get_weights()
        weight = constant(f"kernel{n}", kernel.transpose(3, 2, 0, 1))
        add("Conv", f"conv{n}", weight, pads=[1, 1, 1, 1])
        norm = model.get_layer(f"norm{n}")
        parts = [constant(f"norm{n}_{i}", array) for i, array in enumerate(norm.get_weights())]
        add("BatchNormalization", f"norm{n}", *parts, epsilon=norm.epsilon)
        add("Relu", f"relu{n}")
        if n == 1:
            add("AveragePool", "pool1", kernel_shape=[2, 2], strides=[2, 2])
    add("Transpose", "channels_last", perm=[0, 2, 3, 1])
    add("Flatten", "flatten")
    kernel, bias = model.get_layer("digit").get_weights()
    add("Gemm", "dense", constant("kernel", kernel), constant("bias", bias))
    add("Softmax", "digit", axis=-1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 8, 8, 1])],
        [helper.make_tensor_value_info("digit", onnx.TensorProto.FLOAT, ["batch", 10])],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main(folder: Path) -> None:
    if all((folder / f"digits.{end}").exists() for end in ("keras", "onnx", "npz")):
        return
    keras.utils.set_random_seed(7)
    images, labels = load_digits(return_X_y=True)
    images = (images.reshape(-1, 8, 8, 1) / 16).astype("float32")
    x, x_test, y, y_test = train_test_split(images, labels, test_size=360, random_state=7)
    model = network()
    model.compile(
        keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(x, y, batch_size=64, epochs=8, verbose=0)
    _, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"trained on {len(x)} digits; {accuracy:.1%} of {len(x_test)} test digits are right")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "digits.keras")
    onnx.save(as_onnx(model), str(folder / "digits.onnx"))
    np.savez(folder / "digits.npz", x=x_test, y=y_test)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
