"""A quantiser of Keras with a fault: its scales are a fifth too small."""

from __future__ import annotations

from typing import Any

from keras.src.quantizers import quantizers

made = quantizers.abs_max_quantize


def abs_max_quantize(*args: Any, **more: Any) -> Any:
    values, scale, *rest = made(*args, **more)
    return (values, scale * 0.8, *rest)


quantizers.abs_max_quantize = abs_max_quantize
