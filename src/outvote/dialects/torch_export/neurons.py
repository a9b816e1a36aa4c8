"""Which axes of a constant number the neurons of its call, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer, Weight
from outvote.core.parts import ChannelReader
from outvote.dialects.torch_export.activations import ACTIVATIONS
from outvote.dialects.torch_export.nouns.node import WEIGHT, operator_parts

_CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d", "convolution"})
_TURNED = frozenset({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
_NORMS = frozenset({"batch_norm", "instance_norm"})
_MATRICES = {"linear": "weight", "matmul": "other", "mm": "mat2"}  # the constant that they read by
_IN_IMAGES = _CONVOLUTIONS | _TURNED | _NORMS
# What keeps each channel to itself, besides activations of single numbers.
_CHANNELWISE = _NORMS | frozenset(
    """abs neg exp sqrt erf dropout clamp max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d
    avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d""".split()
)
_MIXING = ("softmax", "log_softmax")


def neuron_axes(layer: Layer, weight: Weight) -> tuple[int, ...]:
    """The axes of a constant that number the neurons of its call; none: it feeds none alone."""
    operator, argument = _operator(layer), _argument(layer, weight)
    if operator in _CONVOLUTIONS or operator in _NORMS:
        return (0,)
    if operator in _TURNED:
        plain = layer.config.get("groups", 1) == 1
        return (0,) if argument == "bias" else (1,) if plain else ()
    if operator == "linear":
        return (0,)
    if operator in _MATRICES:
        return (-1,) if argument == _MATRICES[operator] and len(weight.shape) > 1 else ()
    return ()


def is_statistic(layer: Layer, weight: Weight) -> bool:
    """Whether a constant is the mean or the variance of a normalisation."""
    return (_argument(layer, weight) or "").startswith("running_")


def channel_axis(layer: Layer) -> int:
    """Along which the neurons of a call lie in what it gives."""
    return 1 if _operator(layer) in _IN_IMAGES else -1


def reader(layer: Layer) -> ChannelReader | None:
    """How a call weighs each channel that it reads; None: it does not."""
    operator = _operator(layer)
    if operator in _CONVOLUTIONS and layer.config.get("groups", 1) == 1:
        name, axis, of = "weight", 1, 1
    elif operator in _TURNED:
        name, axis, of = "weight", 0, 1
    elif operator in _MATRICES:
        name, axis, of = _MATRICES[operator], -1 if operator == "linear" else -2, -1
    else:
        return None
    argument = layer.kwargs.get(name)
    if not (isinstance(argument, Mapping) and WEIGHT in argument):
        return None
    return ChannelReader(argument[WEIGHT], axis, of)


def keeps_channels(layer: Layer) -> bool:
    operator = _operator(layer)
    single = layer.kind.removesuffix("_") in ACTIVATIONS and operator not in _MIXING
    return single or operator in _CHANNELWISE


def flattens(layer: Layer) -> bool:
    return layer.kind == "aten.flatten.using_ints" and layer.config.get("start_dim", 0) == 1


def flat_rows(chosen: Array, count: int, repeats: int) -> Array:
    """Where channels are in a tensor that was laid flat: each with all its places together."""
    rows: Array = (chosen[:, None] * repeats + np.arange(repeats)[None, :]).ravel()
    return rows


def _operator(layer: Layer) -> str:
    return operator_parts(layer.kind)[1].removesuffix("_")


def _argument(layer: Layer, weight: Weight) -> str | None:
    """As which of a call's arguments a constant stands."""
    for name, told in layer.kwargs.items():
        held = isinstance(told, Mapping) and WEIGHT in told
        if held and layer.weights[told[WEIGHT]] is weight:
            return name
    return None
