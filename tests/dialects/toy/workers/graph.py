"""A toy as our Model: every tensor says where its batch is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight

Put = Callable[[Array], str]


def model_of(data: Any, put: Put | None) -> tuple[Model, dict[str, int | None]]:
    """The model, and the batch axis of every tensor by its name."""
    axes = {item["name"]: item["batch"] for item in data["inputs"]}
    layers = []
    for node in data["nodes"]:
        axes[node["name"]] = axis = _axis_given(node, axes[node["inputs"][0]])
        arrays = [np.array(weight, np.float32) for weight in node.get("weights", [])]
        layers.append(
            Layer(
                node["name"],
                node["op"],
                node.get("attributes", {}),
                args=[{REF: [name, 0]} for name in node["inputs"]],
                weights=tuple(
                    Weight(f"w{n}", put(array) if put else "", array.shape)
                    for n, array in enumerate(arrays)
                ),
                batch=(axis,),
            )
        )
    inputs = tuple(
        Input(item["name"], tuple(item["shape"]), "float32", item["batch"])
        for item in data["inputs"]
    )
    outputs = tuple(Ref(name) for name in data["outputs"])
    return Model("toy", inputs, tuple(layers), outputs, "toy"), axes


def _axis_given(node: Any, read: int | None) -> int | None:
    if node["op"] == "Transpose" and read is not None:
        return int(node["attributes"]["perm"].index(read))
    return read
