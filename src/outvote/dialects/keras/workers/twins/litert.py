"""A model exported to LiteRT by Keras, on the interpreter that TensorFlow brings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any


def transformed(name: str, model: Any, folder: Any) -> Any:
    import tensorflow as tf

    path = str(Path(folder) / "model.tflite")
    model.export(path, format="litert", verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it moves to a package of its own
        interpreter = tf.lite.Interpreter(model_path=path, num_threads=1)
    given, made = interpreter.get_input_details(), interpreter.get_output_details()

    def run(arrays: Any) -> Any:
        for item, array in zip(given, arrays, strict=True):
            interpreter.resize_tensor_input(item["index"], array.shape)
        interpreter.allocate_tensors()
        for item, array in zip(given, arrays, strict=True):
            interpreter.set_tensor(item["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(item["index"]).copy() for item in made]

    return run
