"""Trains a model a little more, to see whether new inputs make it better."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Model
from outvote.core.protocol import ModelTrained, TrainModel
from outvote.dialects.keras.workers.keras3.graph import Graph, Workshop
from outvote.worker.main import Context


def train(context: Context, workshop: Workshop, request: TrainModel) -> ModelTrained:
    """For each test set (inputs, labels), accuracy before training and after each epoch."""
    get, inputs, batch = context.blobs.get, request.inputs, request.batch
    x = [np.concatenate([get(part[i]) for part in inputs]) for i in range(len(inputs[0]))]
    y = np.concatenate([get(digest) for digest in request.labels])
    sets = [
        ([np.array(get(digest)) for digest in digests], np.array(get(truth)))
        for digests, truth in request.tests
    ]
    keras.utils.set_random_seed(request.seed)
    live = _live(request.model, workshop)
    probabilities = _probabilities(live, sets[0][0], batch)
    loss = _loss(live.output_shape[-1], probabilities)
    live.compile(keras.optimizers.Adam(request.learning_rate), loss)
    context.begin(request.epochs * -(-len(y) // batch))
    scores = [[_accuracy(live, *test, batch) for test in sets]]
    for epoch in range(request.epochs):
        steps = _Steps(context.step)
        live.fit(x, y, batch, epochs=epoch + 1, initial_epoch=epoch, verbose=0, callbacks=[steps])
        scores.append([_accuracy(live, *test, batch) for test in sets])
    return ModelTrained(accuracy=[list(column) for column in zip(*scores, strict=True)])


class _Steps(keras.callbacks.Callback):  # type: ignore[misc]
    """Tells the driver of every batch."""

    def __init__(self, step: Callable[[], None]) -> None:
        super().__init__()
        self._step = step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step()


def _live(model: Model, workshop: Workshop) -> Any:
    feeds = [
        keras.Input(batch_shape=(None, *item.shape[1:]), dtype=item.dtype, name=item.name)
        for item in model.inputs
    ]
    outputs = Graph(model, workshop, lambda name: None).forward(feeds)
    return keras.Model(feeds, outputs[0])


def _predicted(live: Any, inputs: list[Array], batch: int) -> Array:
    return np.asarray(live.predict(inputs if len(inputs) > 1 else inputs[0], batch, verbose=0))


def _accuracy(live: Any, inputs: list[Array], truth: Array, batch: int) -> float:
    output = _predicted(live, inputs, batch)
    if output.shape[1] == 1:
        limit = 0.5 if (output >= 0).all() and (output <= 1).all() else 0.0
        return float(((output[:, 0] > limit) == truth).mean())
    return float((output.argmax(axis=1) == truth).mean())


def _probabilities(live: Any, inputs: list[Array], batch: int) -> bool:
    """Whether the model ends in a softmax or a sigmoid, by what it gives."""
    output = _predicted(live, [array[:batch] for array in inputs], batch)
    inside = bool((output >= -1e-6).all() and (output <= 1 + 1e-6).all())
    return inside and (output.shape[1] == 1 or bool((abs(output.sum(axis=1) - 1) < 1e-2).all()))


def _loss(width: int, probabilities: bool) -> Any:
    if width == 1:
        return keras.losses.BinaryCrossentropy(from_logits=not probabilities)
    return keras.losses.SparseCategoricalCrossentropy(from_logits=not probabilities)
