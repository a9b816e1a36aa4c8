"""The other data format: channels before or behind the places that they are of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outvote.bench.relation import Asked, OtherWay
from outvote.core.arrays import Array
from outvote.core.outputs import Outputs

NAME = "channels"
TITLE = "channels first must give what channels last gives, transposed"

_OTHER = {"channels_last": "channels_first", "channels_first": "channels_last"}


def twin(asked: Asked) -> OtherWay | None:
    """One tensor with its channels moved; what has no places any more is equal as it is."""
    specimen = asked.specimen
    layer, now = specimen.last, specimen.last.config.get("data_format")
    is_one = len(specimen.model.layers) == len(specimen.inputs) == 1
    if not is_one or now not in _OTHER or layer.kind.startswith("ConvLSTM"):
        return None  # the latter have time before both
    (x,) = specimen.inputs
    if x.ndim < 3:
        return None
    turned = specimen.with_inputs([_moved(x, now)])
    config = {**layer.config, "data_format": _OTHER[now]}

    def sides(plain: Outputs, twin: Outputs) -> tuple[Outputs, Outputs]:
        arrays = tuple(_moved(a, now) if a.ndim > 2 else a for a in plain.arrays)
        return replace(plain, arrays=arrays), twin

    return OtherWay(turned.with_config(layer.name, config), sides)


def _moved(array: Array, now: str) -> Array:
    """From a data format to the other one."""
    ends = (-1, 1) if now == "channels_last" else (1, -1)
    return np.ascontiguousarray(np.moveaxis(array, *ends))
