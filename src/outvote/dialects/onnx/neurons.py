"""Which axes of a constant number the neurons of its node, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer, Weight
from outvote.core.parts import ChannelReader
from outvote.dialects.onnx.nouns.node import WEIGHT

# What keeps each channel to itself.
_CHANNELWISE = frozenset(
    "Relu LeakyRelu Elu Selu Celu Gelu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Mish "
    "ThresholdedRelu Swish Abs Neg Exp Sqrt Erf Identity Dropout Clip PRelu BatchNormalization "
    "InstanceNormalization MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool "
    "Resize".split()
)
_IN_IMAGES = frozenset(
    {"Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "PRelu"}
)
_RECURRENT = frozenset({"RNN", "GRU", "LSTM"})


def neuron_axes(layer: Layer, weight: Weight) -> tuple[int, ...]:
    """The axes of a constant that number the neurons of its node; none: it feeds none alone."""
    place = _place(layer, weight)
    rank = len(weight.shape)
    if layer.kind == "Conv" or (layer.kind == "ConvTranspose" and place == 2):
        return (0,) if place in (1, 2) else ()
    if layer.kind == "ConvTranspose":
        return (1,) if place == 1 and layer.config.get("group", 1) == 1 else ()
    if layer.kind == "Gemm":
        turned = bool(layer.config.get("transB", 0))
        return ((0,) if turned else (1,)) if place == 1 else (-1,) if place == 2 else ()
    if layer.kind == "MatMul":
        return (-1,) if place == 1 and rank > 1 else ()
    if layer.kind in _RECURRENT:
        return (1,) if place in (1, 2) else ()
    if layer.kind in ("BatchNormalization", "InstanceNormalization"):
        return (0,)
    return ()


def is_statistic(layer: Layer, weight: Weight) -> bool:
    """Whether a constant is the mean or the variance of a batch normalisation."""
    return layer.kind == "BatchNormalization" and _place(layer, weight) in (3, 4)


def channel_axis(layer: Layer) -> int:
    """Along which the neurons of a node lie in what it gives."""
    return 1 if layer.kind in _IN_IMAGES else -1


def reader(layer: Layer) -> ChannelReader | None:
    """How a node weighs each channel that it reads; None: it does not."""
    place, axis, of = 1, 0, -1
    if layer.kind == "Conv" and layer.config.get("group", 1) == 1:
        axis, of = 1, 1
    elif layer.kind == "ConvTranspose":
        axis, of = 0, 1
    elif layer.kind == "Gemm" and not layer.config.get("transA", 0):
        axis = 1 if layer.config.get("transB", 0) else 0
    elif layer.kind == "MatMul":
        axis = -2
    elif layer.kind in _RECURRENT:
        axis = 2
    else:
        return None
    argument = layer.args[place] if len(layer.args) > place else None
    if not (isinstance(argument, Mapping) and WEIGHT in argument):
        return None
    return ChannelReader(argument[WEIGHT], axis, of)


def keeps_channels(layer: Layer) -> bool:
    return layer.kind in _CHANNELWISE


def flattens(layer: Layer) -> bool:
    return layer.kind == "Flatten" and layer.config.get("axis", 1) == 1


def flat_rows(chosen: Array, count: int, repeats: int) -> Array:
    """Where channels are in a tensor that was laid flat: each with all its places together."""
    rows: Array = (chosen[:, None] * repeats + np.arange(repeats)[None, :]).ravel()
    return rows


def _place(layer: Layer, weight: Weight) -> int | None:
    """At which of a node's arguments a constant stands."""
    for place, argument in enumerate(layer.args):
        told = isinstance(argument, Mapping) and WEIGHT in argument
        if told and layer.weights[argument[WEIGHT]] is weight:
            return place
    return None
