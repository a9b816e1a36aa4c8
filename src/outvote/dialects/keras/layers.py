"""What the driver must know of a Keras layer: its parameters, its type, how it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from outvote.core.model import Input, Layer, Model, find_refs

# Parameters that change nothing about what a built layer computes from its weights.
INERT = (
    *("name", "trainable", "dtype", "autocast", "seed"),
    *("batch_input_shape", "build_config", "registered_name"),
)
INERT_ENDINGS = ("_initializer", "_regularizer", "_constraint", "_quantizer")
# Layers that take `query_mask` and the like, and what they call their tensors.
_MASKS_BY_NAME = ("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention")
_ATTENDED = ("query", "value", "key")


def is_inert(name: str) -> bool:
    """Whether a parameter cannot matter to a result; the type is told apart from the others."""
    return name in INERT or name.endswith(INERT_ENDINGS)


def parameters(layer: Layer) -> dict[str, Any]:
    """The parameters that may matter."""
    return {key: value for key, value in layer.config.items() if not is_inert(key)}


def dtype(layer: Layer) -> str | None:
    """The type that the layer computes in; None where its configuration does not say."""
    return policy_name(layer.config.get("dtype"))


def policy_name(told: Any) -> str | None:
    """The name of a type: configurations hold it as such, or as a policy."""
    if isinstance(told, Mapping):
        told = told.get("config", {}).get("name")
    return None if told is None else str(told)


def contains(layer: Layer, inner: Layer) -> bool:
    """An activation may stand alone, or be part of almost any layer."""
    return inner.kind == "Activation" and "activation" in layer.config


def renamed(layer: Layer, name: str) -> Layer:
    """The layer under another name; Keras refuses slashes in its own."""
    return replace(layer, name=name, config={**layer.config, "name": name.replace("/", "_")})


def stale(layer: Layer) -> Layer:
    """Without the shapes that it was built for."""
    return replace(layer, origin={**layer.origin, "build": None})


def makes_masks(layer: Layer) -> bool:
    return layer.kind == "Masking" or bool(layer.config.get("mask_zero"))


def masked(layer: Layer, masks: Sequence[Any]) -> dict[str, Any]:
    """Most layers take all in one argument; some have one for each tensor, named after it."""
    if layer.kind not in _MASKS_BY_NAME:
        read = masks[: len(list(find_refs(layer.args)))]  # not what is given by name
        return {"mask": read[0] if len(read) == 1 else list(read)}
    read = [
        *_ATTENDED[: len(layer.args)],
        *(k for k, v in layer.kwargs.items() if any(find_refs(v))),
    ]
    return {
        f"{name}_mask": mask for name, mask in zip(read, masks, strict=True) if mask is not None
    }


def vocabulary(model: Model, item: Input) -> int:
    """How many ids an integer input may take: what the embeddings that read it can look up."""
    sizes = [
        int(layer.config["input_dim"])
        for layer in model.layers
        if item.name in layer.inputs and "input_dim" in layer.config
    ]
    return min(sizes, default=2)


def words(model: Model, item: Input) -> tuple[str, ...]:
    """Keras' layers that read texts are not given any."""
    return ()


def is_classifier(model: Model) -> bool:
    """Whether it ends in a sigmoid: one number that is a probability."""
    last = model.last_layer()
    return last is not None and last.config.get("activation") == "sigmoid"
