"""Which axes of a weight number the neurons of its layer, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer, Weight
from outvote.core.parts import ChannelReader

_STATISTICS = ("moving_mean", "moving_variance", "mean", "variance")
_DEPTHWISE = ("DepthwiseConv1D", "DepthwiseConv2D")
# Kernels whose last axis but one is what they read, in channels.
_READERS = tuple(
    "Dense Conv1D Conv2D Conv3D LSTM GRU SimpleRNN SeparableConv1D SeparableConv2D".split()
)
# What keeps each channel to itself, by the start of the kind's name.
_CHANNELWISE = tuple(
    "Activation ReLU LeakyReLU ELU PReLU Dropout SpatialDropout BatchNormalization MaxPooling "
    "AveragePooling GlobalAveragePooling GlobalMaxPooling ZeroPadding Cropping UpSampling "
    "Identity Gaussian AlphaDropout".split()
)


def neuron_axes(layer: Layer, weight: Weight) -> tuple[int, ...]:
    """The axes of a weight that number the neurons of its layer; none: it feeds no neuron alone.

    Transposed convolutions keep their outputs before their inputs, depthwise ones multiply each
    input, and separable ones have neurons behind their second kernel only.
    """
    kind = _computing_kind(layer)
    is_kernel = len(weight.shape) > 2
    if kind.endswith("Transpose") and is_kernel:
        return (-2,)
    if kind in _DEPTHWISE and is_kernel:
        return (-2, -1)
    if kind.startswith("SeparableConv") and weight.name == "depthwise_kernel":
        return ()
    return (-1,)


def is_statistic(layer: Layer, weight: Weight) -> bool:
    """Whether a weight is a running mean or variance."""
    return weight.name in _STATISTICS


def channel_axis(layer: Layer) -> int:
    """Along which the neurons of a layer lie in what it gives."""
    return -1


def reader(layer: Layer) -> ChannelReader | None:
    """How a layer reads channels: by the rows of its first weight."""
    return ChannelReader(0, -2, -1) if layer.kind in _READERS and layer.weights else None


def keeps_channels(layer: Layer) -> bool:
    return layer.kind.startswith(_CHANNELWISE)


def flattens(layer: Layer) -> bool:
    return layer.kind == "Flatten"


def flat_rows(chosen: Array, count: int, repeats: int) -> Array:
    """Where channels are in a tensor that was laid flat: all of them, one place after the other."""
    rows: Array = (chosen[None, :] + count * np.arange(repeats)[:, None]).ravel()
    return rows


def _computing_kind(layer: Layer) -> str:
    """The kind of the layer, or of the one that it wraps."""
    kind, config = layer.kind, layer.config
    while isinstance(inner := config.get("layer"), Mapping) and isinstance(
        inner.get("config"), Mapping
    ):
        kind, config = str(inner.get("class_name")), inner["config"]
    return kind
