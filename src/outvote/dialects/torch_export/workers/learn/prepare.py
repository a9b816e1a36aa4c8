"""A program in which nothing is drawn at random any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from outvote.core.model import Layer
from outvote.core.train_protocol import PrepareTraining, TrainingPrepared
from outvote.dialects.torch_export.nouns.node import operator_parts
from outvote.dialects.torch_export.workers.shared.tensors import callable_of

_CHANCES = ("dropout_p", "dropout")  # arguments that say how much is dropped


def prepare(request: PrepareTraining) -> TrainingPrepared:
    """The program as it is written, without what it would drop."""
    layers, stilled, drawing = [], [], []
    for layer in request.model.layers:
        still = _still(layer)
        if still is None:
            drawing.append(layer.name)
        elif still != layer.config:
            stilled.append(layer.name)
            layer = replace(layer, config=still)
        layers.append(layer)
    model = replace(request.model, layers=tuple(layers))
    return TrainingPrepared(model=model, stilled=tuple(stilled), drawing=tuple(drawing))


def _still(layer: Layer) -> Mapping[str, Any] | None:
    """Arguments with which a call draws nothing; None: there are none."""
    operator = callable_of(layer.kind)
    tags = getattr(operator, "tags", ())
    if torch.Tag.nondeterministic_seeded not in tags:
        return layer.config
    named = [argument.name for argument in operator._schema.arguments]  # type: ignore[attr-defined]
    chance = next((name for name in _CHANCES if name in named), None)
    if chance is not None:
        return {**layer.config, chance: 0.0} if layer.config.get(chance) else layer.config
    if "dropout" in operator_parts(layer.kind)[1] and "train" in named:
        return {**layer.config, "train": False} if layer.config.get("train") else layer.config
    return layer.config if "training" in named and not layer.config.get("training") else None
