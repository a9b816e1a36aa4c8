"""Layers that take a plain call for training: augmentation, as a rule.

Keras decides by whoever calls: `predict` says that nothing is trained. outvote calls layers one by
one, so it has to say so itself.
"""

from __future__ import annotations

import inspect
from typing import Any


def inference_arguments(layer: Any) -> dict[str, bool]:
    """`training=False` where the layer, or one inside it, would train without it."""
    parts = layer._flatten_layers() if hasattr(layer, "_flatten_layers") else ()
    if _training_of(layer) is None or not any(_trains(part) for part in parts):
        return {}
    return {"training": False}


def _training_of(layer: Any) -> inspect.Parameter | None:
    return inspect.signature(layer.call).parameters.get("training")


def _trains(layer: Any) -> bool:
    parameter = _training_of(layer)
    return parameter is not None and parameter.default is True
