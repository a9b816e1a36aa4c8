"""A setup script that plants faults which depend on one or two parameters.

Which of them is active stands in the file that OUTVOTE_ACTIVE_FAULT names, read at every call, so
that one worker serves them all. benchmarks/parameter_localization.py writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Condition = Callable[[Any], bool]


def _even(layer: Any) -> bool:
    return any(n % 2 == 0 for n in layer.kernel_size)


def _strided(layer: Any) -> bool:
    return bool(max(layer.strides) > 1)


# name → kind of layer, when it is wrong, the parameters to be named, parameters of the case, shape
FAULTS: dict[str, tuple[str, Condition, set[str], dict[str, Any], tuple[int, ...]]] = {
    "same padding with an even kernel": (
        "Conv2D",
        lambda x: x.padding == "same" and _even(x),
        {"padding", "kernel_size"},
        {"filters": 4, "kernel_size": 4, "padding": "same"},
        (8, 8, 4),
    ),
    "same padding with strides": (
        "Conv2D",
        lambda x: x.padding == "same" and _strided(x),
        {"padding", "strides"},
        {"filters": 4, "kernel_size": 3, "padding": "same", "strides": 2, "activation": "relu"},
        (8, 8, 4),
    ),
    "groups": (
        "Conv2D",
        lambda x: x.groups > 1,
        {"groups"},
        {"filters": 4, "kernel_size": 3, "groups": 2},
        (8, 8, 4),
    ),
    "dilation": (
        "Conv2D",
        lambda x: max(x.dilation_rate) > 1,
        {"dilation_rate"},
        {"filters": 4, "kernel_size": 3, "dilation_rate": 2},
        (9, 9, 4),
    ),
    "causal padding": (
        "Conv1D",
        lambda x: x.padding == "causal",
        {"padding"},
        {"filters": 4, "kernel_size": 3, "padding": "causal"},
        (9, 4),
    ),
    "depth multiplier": (
        "SeparableConv2D",
        lambda x: x.depth_multiplier > 1,
        {"depth_multiplier"},
        {"filters": 4, "kernel_size": 3, "depth_multiplier": 2},
        (8, 8, 3),
    ),
    "channels first": (
        "DepthwiseConv2D",
        lambda x: x.data_format == "channels_first",
        {"data_format"},
        {"kernel_size": 3, "data_format": "channels_first"},
        (6, 6, 6),
    ),
    "transposed, same padding with strides": (
        "Conv2DTranspose",
        lambda x: x.padding == "same" and _strided(x),
        {"padding", "strides"},
        {"filters": 4, "kernel_size": 3, "padding": "same", "strides": 2},
        (6, 6, 4),
    ),
    "going backwards": (
        "GRU",
        lambda x: x.go_backwards,
        {"go_backwards"},
        {"units": 4, "go_backwards": True, "return_sequences": True},
        (6, 4),
    ),
    "reset before the product": (
        "GRU",
        lambda x: not x.reset_after,
        {"reset_after"},
        {"units": 4, "reset_after": False},
        (6, 4),
    ),
    "recurrent activation": (
        "LSTM",
        lambda x: x.recurrent_activation.__name__ == "hard_sigmoid",
        {"recurrent_activation"},
        {"units": 4, "recurrent_activation": "hard_sigmoid"},
        (6, 4),
    ),
    "not the last axis": (
        "UnitNormalization",
        lambda x: x.axis in (1, [1]),
        {"axis"},
        {"axis": 1},
        (6, 4),
    ),
    "without scale": (
        "BatchNormalization",
        lambda x: not x.scale,
        {"scale"},
        {"scale": False},
        (8, 8, 4),
    ),
    "average pooling with same padding": (
        "AveragePooling2D",
        lambda x: x.padding == "same",
        {"padding"},
        {"pool_size": 2, "padding": "same", "data_format": "channels_last"},
        (7, 7, 4),
    ),
    "strides beyond the window": (
        "MaxPooling2D",
        lambda x: x.strides[0] > x.pool_size[0],
        {"strides", "pool_size"},
        {"pool_size": 2, "strides": 3},
        (9, 9, 4),
    ),
    "bilinear": (
        "UpSampling2D",
        lambda x: x.interpolation == "bilinear",
        {"interpolation"},
        {"size": 2, "interpolation": "bilinear"},
        (5, 5, 3),
    ),
    "gelu": (
        "Dense",
        lambda x: x.activation.__name__ == "gelu",
        {"activation"},
        {"units": 5, "activation": "gelu"},
        (8,),
    ),
    "several heads": (
        "MultiHeadAttention",
        lambda x: x.num_heads > 1,
        {"num_heads"},
        {"num_heads": 2, "key_dim": 4},
        (6, 4),
    ),
    "kept dimensions": (
        "GlobalAveragePooling2D",
        lambda x: x.keepdims,
        {"keepdims"},
        {"keepdims": True},
        (6, 6, 3),
    ),
    "alpha": ("ELU", lambda x: float(x.alpha) != 1.0, {"alpha"}, {"alpha": 0.5}, (12,)),
    "a largest value": (
        "ReLU",
        lambda x: x.max_value is not None,
        {"max_value"},
        {"max_value": 1.0},
        (12,),
    ),
}


def plant() -> None:
    """Replace `call` of every kind: while its fault is active, the outputs are off by 5 %."""
    import keras

    path = Path(os.environ["OUTVOTE_ACTIVE_FAULT"])
    by_kind: dict[str, dict[str, Condition]] = {}
    for name, (kind, condition, *_) in FAULTS.items():
        by_kind.setdefault(kind, {})[name] = condition
    for kind, conditions in by_kind.items():
        _wrap(getattr(keras.layers, kind), conditions, path)


def _wrap(kind: Any, conditions: dict[str, Condition], path: Path) -> None:
    released = kind.call

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = released(self, *args, **kwargs)
        condition = conditions.get(path.read_text())
        return result * 1.05 if condition and condition(self) else result

    kind.call = call


if __name__ == "__main__":
    plant()
