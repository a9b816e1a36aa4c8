"""A few steps of training as Keras takes them by itself: `compile` and `train_on_batch`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.model import Layer, Model
from outvote.core.train_protocol import (
    PrepareTraining,
    StepsTrained,
    TrainingPrepared,
    TrainSteps,
)
from outvote.dialects.keras.workers.keras3.graph import Graph, Workshop
from outvote.dialects.keras.workers.keras3.neutral import functional
from outvote.dialects.keras.workers.keras3.pullback import loss_of, weights_now
from outvote.dialects.keras.workers.keras3.update import optimizer_of
from outvote.worker.main import Context

_CHANCES = ("rate", "dropout", "recurrent_dropout", "stddev")  # 0: nothing is drawn
_COMPILED = ("xla", "jit", "compile")


def prepare(workshop: Workshop, request: PrepareTraining) -> TrainingPrepared:
    """The model as `fit` calls it, without what it would draw at random."""
    from outvote.dialects.keras.workers.keras3.graph import spec_of

    layers, stilled, drawing = [], [], []
    for layer in request.model.layers:
        still = replace(layer, config=_without_chance(layer.config))
        if still.config != layer.config:
            stilled.append(layer.name)
        made = workshop.revive({**spec_of(still), "build_config": None})
        # Of augmentations, which were told not to train, some resize or the like, and draw nothing.
        if layer.kwargs.get("training") is False and _draws(made):
            drawing.append(layer.name)
        layers.append(_in_training(still, made))
    model = replace(request.model, layers=tuple(layers))
    return TrainingPrepared(model=model, stilled=tuple(stilled), drawing=tuple(drawing))


def _without_chance(config: Any) -> Any:
    if isinstance(config, Mapping):
        return {
            key: 0.0
            if key in _CHANCES and isinstance(value, float | int) and value
            else _without_chance(value)
            for key, value in config.items()
        }
    return [_without_chance(item) for item in config] if isinstance(config, list) else config


def _draws(made: Any) -> bool:
    """Whether a layer, or one inside it, has somewhere to take random numbers from."""
    parts = made._flatten_layers() if hasattr(made, "_flatten_layers") else (made,)
    return any(getattr(part, "_seed_generators", ()) for part in parts)


def _in_training(layer: Layer, made: Any) -> Layer:
    """Told to train, if it is a layer that asks."""
    if not getattr(made, "_call_has_training_arg", False):
        return layer
    return replace(layer, kwargs={**layer.kwargs, "training": True})


def train_steps(
    context: Context, workshop: Workshop, mode: str, request: TrainSteps
) -> StepsTrained:
    """Loss and weights of every step."""
    get = context.blobs.get
    graph = Graph(_untold(request.model), workshop, context.enter, learning=True)
    live = functional(graph)
    live.compile(
        optimizer=optimizer_of(request.optimizer),
        loss=loss_of(request.loss),
        run_eagerly=mode not in ("graph", *_COMPILED),
        jit_compile=mode in _COMPILED,
    )
    x = [np.array(get(digest)) for digest in request.inputs]
    y = np.array(get(request.truth))
    weight = np.array(get(request.sample_weight)) if request.sample_weight else None
    context.begin(request.rounds)
    losses, after = [], []
    for _ in range(request.rounds):
        told = live.train_on_batch(x if len(x) > 1 else x[0], y, sample_weight=weight)
        losses.append(float(told))
        after.append(weights_now(graph))
        live.reset_metrics()
        context.step()
    return StepsTrained(losses=tuple(losses), weights=tuple(after))


def _untold(model: Model) -> Model:
    """Without `training`, which the trainer itself says."""
    layers = (
        replace(layer, kwargs={k: v for k, v in layer.kwargs.items() if k != "training"})
        for layer in model.layers
    )
    return replace(model, layers=tuple(layers))
