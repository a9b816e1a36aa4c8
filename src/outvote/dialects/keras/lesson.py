"""Training in Keras' words: losses and optimisers by name, what an optimiser does besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.lesson import named as named
from outvote.core.model import REF, Layer, Model, Ref
from outvote.core.train_protocol import Named
from outvote.dialects.keras.logits import logits_apart
from outvote.dialects.keras.updates import exact_update as exact_update

AS_WRITTEN = False  # layers are told to train
# What optimisers do beside their own rule, by the parameters that switch it on.
FEATURES: Mapping[str, tuple[str, ...]] = {
    "clipping": ("clipnorm", "clipvalue", "global_clipnorm"),
    "decay": ("weight_decay",),
    "averaging": ("use_ema",),
    "loss scaling": ("loss_scale_factor",),
    "accumulation": ("gradient_accumulation_steps",),
}
_OF_CLASSES = ("crossentropy", "hinge", "kl", "focal", "dice", "tversky")
_OFF = {"use_ema": False, "weight_decay": 0.0}  # None for others; AdamW refuses None


def loss_for(output: Array, labels: Array | None) -> Named:
    """For class labels crossentropy, of logits or of probabilities by what there is; else MSE."""
    if labels is None:
        return {"class_name": "MeanSquaredError"}
    inside = bool((output >= 0).all() and (np.abs(output.sum(axis=-1) - 1) < 1e-2).all())
    name = "SparseCategoricalCrossentropy"
    return {"class_name": name, "config": {"from_logits": not inside}}


def truth_for(
    loss: Named,
    output: Array,
    labels: Array | None,
    given: Array | None,
    rng: np.random.Generator,
) -> Array:
    """Labels as numbers or as rows of one 1, values as they are; drawn where none is known."""
    name = str(loss["class_name"]).lower()
    if given is not None:
        return given.astype(output.dtype)
    if labels is None and not any(word in name for word in _OF_CLASSES):
        return rng.normal(size=output.shape).astype(output.dtype)
    classes = output.shape[-1]
    if labels is None:
        labels = rng.integers(0, max(2, classes), output.shape[:-1])
    if "sparse" in name:
        return labels.astype(np.int32)
    if classes == 1:
        return labels[..., None].astype(output.dtype)
    return np.eye(classes, dtype=output.dtype)[labels]


def features(optimizer: Named) -> dict[str, Named]:
    """The optimiser without each thing that it does beside its own rule."""
    config = optimizer.get("config") or {}
    found: dict[str, Named] = {}
    for feature, keys in FEATURES.items():
        on = [key for key in keys if config.get(key)]
        if on:
            off = {key: _OFF.get(key) for key in on}
            found[feature] = {**optimizer, "config": {**config, **off}}
    return found


def passed_on(model: Model) -> Model | None:
    """The model with what it gives passed on by one more layer; None where no logits are squashed.

    TensorFlow's losses look for the logits behind a softmax or a sigmoid, and find none there.
    """
    split, logits = logits_apart(model)
    if logits == split.outputs[0]:
        return None
    (end,) = model.outputs
    squashing = model.layer(end.producer)
    name = f"{squashing.name}_passed_on"
    config = {"name": name, "scale": 1.0, "offset": 0.0}
    if "dtype" in squashing.config:
        config["dtype"] = squashing.config["dtype"]
    origin = {key: value for key, value in squashing.origin.items() if key == "module"}
    passed = Layer(name, "Rescaling", config, args=[{REF: [end.producer, 0]}], origin=origin)
    return replace(model, layers=(*model.layers, passed), outputs=(Ref(name),))


def is_regularised(layer: Layer) -> bool:
    """Whether a layer adds something to the loss."""
    return any(key.endswith("_regularizer") and value for key, value in _items(layer.config))


def _items(config: Any) -> list[tuple[str, Any]]:
    if isinstance(config, Mapping):
        pairs = [(str(key), value) for key, value in config.items()]
        return [*pairs, *(pair for _, value in pairs for pair in _items(value))]
    return [pair for item in config for pair in _items(item)] if isinstance(config, list) else []


def constraint_of(layer: Layer, weight: str) -> Named | None:
    """What the weight of a layer is held to after an update."""
    found = layer.config.get(f"{weight}_constraint")
    return found if isinstance(found, Mapping) else None


def looked_up(model: Model, layer: Layer, inputs: Sequence[Array]) -> Array | None:
    """The rows of a weight that alone get gradients: what an embedding looks up in a batch."""
    if layer.kind != "Embedding":
        return None
    names = [item.name for item in model.inputs]
    places = [names.index(name) for name in layer.inputs if name in names]
    return inputs[places[0]].reshape(-1).astype(np.int64) if places else None
