"""Builds and trains the zoo's models inside a worker: `build`, `train` and `dataset`.

The driver makes the data; it arrives as blobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import keras
import numpy as np
from keras.src.utils.naming import reset_uids

from outvote.core.arrays import Array
from outvote.core.protocol import File
from outvote.core.zoo_protocol import (
    BuildZooModel,
    DatasetLoaded,
    LoadDataset,
    ModelPlan,
    TrainZooModel,
    ZooModelBuilt,
    ZooModelTrained,
)
from outvote.dialects.keras.workers.keras3.graph import zeros_for_weights
from outvote.dialects.keras.workers.keras3.zoo_models import make
from outvote.worker.main import Context, Refused

_SPREAD = 3.0  # standard deviation of logits over the inputs, as training leaves them
_HARDLY = 1e-3  # features that move less than this from input to input carry nothing


def build(context: Context, request: BuildZooModel) -> ZooModelBuilt:
    """Make a model with random weights whose outputs depend on the input."""
    context.begin(0)
    model = _random_model(request.plan, request.seed)
    _calibrate(model, np.array(context.blobs.get(request.x)))
    file = _saved(context, model)
    return ZooModelBuilt(file=file, layers=len(model.layers), weights=int(model.count_params()))


def train(context: Context, request: TrainZooModel) -> ZooModelTrained:
    """Train a fresh model on blobs `x`, `y`; tell its score on `x_test`, `y_test`."""
    x, y, x_test, y_test = (
        np.array(context.blobs.get(digest))
        for digest in (request.x, request.y, request.x_test, request.y_test)
    )
    epochs, batch = request.epochs, request.batch
    context.begin(epochs * -(-len(x) // batch))
    model = _random_model(request.plan, request.seed)
    for layer in _norms(model):
        layer.momentum = 0.9  # a short training makes few steps
    labels = request.plan.classifier
    model.compile(
        keras.optimizers.Adam(request.rate, clipnorm=1.0),
        "sparse_categorical_crossentropy" if labels else "mse",
        jit_compile=keras.backend.backend() == "jax",  # XLA is slow at training convolutions
    )
    progress = _progress(context, epochs)
    fitted = model.fit(x, y, batch, epochs, verbose=0, callbacks=[progress])
    loss = fitted.history["loss"][-1]
    if not np.isfinite(loss):
        raise Refused(f"training diverged: the loss is {loss}; are the numbers in x very large?")
    answers = model.predict(x_test, batch, verbose=0)
    if labels:
        scores = np.mean(answers.argmax(axis=-1) == y_test)
    else:
        scores = np.mean(np.abs(answers - y_test))
    # Without the optimizer, whose state is twice the size of the weights.
    file = _saved(context, keras.Model(model.inputs, model.outputs, name=model.name))
    size = int(model.count_params())
    score = float(scores)
    return ZooModelTrained(file=file, layers=len(model.layers), weights=size, score=score)


def dataset(context: Context, request: LoadDataset) -> DatasetLoaded:
    """Load one of keras.datasets, from its cache or the network; both halves as one."""
    name = request.name
    source: Any = getattr(keras.datasets, name)
    try:
        parts = source.load_data(**({"num_words": request.vocabulary} if name == "imdb" else {}))
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise Refused(
            f"keras.datasets.{name} could not be loaded ({reason}); "
            "without a network, give a file with --data FILE.npz"
        ) from error
    padded = [x for x, _ in parts]
    if name == "imdb":
        padded = [keras.utils.pad_sequences(x, request.length) for x in padded]
    blobs = context.blobs
    labels = np.concatenate([np.asarray(y) for _, y in parts])
    return DatasetLoaded(x=blobs.put(np.concatenate(padded)), y=blobs.put(labels))


def _saved(context: Context, model: Any) -> File:
    with TemporaryDirectory(dir=context.folder) as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        return context.taken(path)


def _progress(context: Context, epochs: int) -> Any:
    """Notes every batch, so that the driver can show rates and tell slow from stuck."""

    class Progress(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            context.enter(f"epoch {epoch + 1}/{epochs}")

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            context.step()

    return Progress()


def _random_model(plan: ModelPlan, seed: int) -> Any:
    """Weights come from NumPy, so that every backend builds the same model from a seed."""
    keras.utils.set_random_seed(seed)
    reset_uids()  # layers are named alike whatever this worker built before
    with zeros_for_weights():
        model = make(plan)
    rng = np.random.default_rng(seed)
    for layer in model.layers:
        for part in layer._flatten_layers():
            for variable in part._trainable_variables + part._non_trainable_variables:
                variable.assign(_value(part, variable, rng).astype("float32"))
    return model


def _value(layer: Any, variable: Any, rng: np.random.Generator) -> Array:
    """Spread so that signals neither die out nor explode on the way (He et al. 2015)."""
    name, shape = variable.name, tuple(variable.shape)
    if name in ("gamma", "moving_variance"):
        return rng.uniform(0.8, 1.2, shape)
    if name in ("beta", "moving_mean", "bias"):
        small = rng.normal(0, 0.05, shape)
        if isinstance(layer, keras.layers.LSTMCell):
            small[layer.units : 2 * layer.units] += 1  # to remember, until trained to forget
        return small
    if name == "embeddings":
        return rng.normal(0, 0.5, shape)
    depthwise = isinstance(layer, keras.layers.DepthwiseConv2D) or "depthwise" in name
    fan_in = np.prod(shape[:2] if depthwise else shape[:-1])
    recurrent = hasattr(layer, "state_size")
    return rng.normal(0, ((1 if recurrent else 2) / fan_in) ** 0.5, shape)


def _calibrate(model: Any, x: Array) -> None:
    """Normalisation statistics and logits as training would leave them.

    With weights that are merely random, deep networks answer the same whatever they are asked.
    The first half of the inputs sets the statistics; the other half, the last layer.
    """
    norms, half = _norms(model), len(x) // 2
    with _momentum(norms, 0.0):
        model(x[:half], training=True)
    for layer in norms:  # few samples make some channels look constant, which they are not
        variance = keras.ops.convert_to_numpy(layer.moving_variance)
        layer.moving_variance.assign((variance + variance.mean()) / 2)
    last = [layer for layer in model.layers if hasattr(layer, "kernel")][-1]
    kernel = keras.ops.convert_to_numpy(last.kernel)
    features = keras.Model(model.inputs, last.input).predict(x[half:], verbose=0)
    logits = features.reshape(len(features), -1) @ kernel.reshape(-1, kernel.shape[-1])
    moved = logits.std(axis=0).mean()
    if not moved > _HARDLY * np.abs(logits).mean():
        raise Refused(
            f"the features of {model.name} hardly depend on the input with random weights; "
            "choose another --seed or a larger --size"
        )
    scale = (_SPREAD if kernel.shape[-1] > 1 else 1.0) / moved
    last.kernel.assign(kernel * scale)
    last.bias.assign(-logits.mean(axis=0) * scale)


def _norms(model: Any) -> list[Any]:
    return [layer for layer in model.layers if hasattr(layer, "moving_mean")]


@contextmanager
def _momentum(norms: list[Any], value: float) -> Iterator[None]:
    before = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = value
    yield
    for layer, momentum in zip(norms, before, strict=True):
        layer.momentum = momentum
