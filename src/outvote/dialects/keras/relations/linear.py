"""Layers that weigh and add: the sum of two inputs gives the sum of what each gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outvote.bench.relation import Asked, OtherWay
from outvote.core.arrays import Array
from outvote.core.instances import taken
from outvote.core.model import Layer
from outvote.core.outputs import Outputs

NAME = "linear"
TITLE = "a linear layer must give for a sum the sum of what it gives for each"

KINDS = frozenset(
    {
        *("Dense", "EinsumDense", "Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D"),
        *("DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"),
        *("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"),
        *("AveragePooling1D", "AveragePooling2D", "AveragePooling3D"),
        *("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D"),
        *("BatchNormalization", "Rescaling", "UpSampling1D", "UpSampling2D", "UpSampling3D"),
        *("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D"),
        *("Cropping1D", "Cropping2D", "Cropping3D"),
        *("Add", "Subtract", "Average", "Concatenate"),
        *("Flatten", "Reshape", "Permute", "RepeatVector"),
    }
)


def twin(asked: Asked) -> OtherWay | None:
    """Each instance with its neighbour added, and one of zeros, which shows what is added."""
    specimen, count = asked.specimen, asked.specimen.count
    linear = len(specimen.model.layers) == 1 and is_linear(specimen.last)
    if not (linear and asked.has_instances and all(map(_is_plain, specimen.inputs))):
        return None
    if any(item.batch is None or "float" not in item.dtype for item in specimen.model.inputs):
        return None
    following = [*range(1, count), 0]

    def summed(array: Array, axis: int) -> Array:
        both = array + taken(array, axis, following)
        return np.concatenate([both, np.zeros_like(taken(array, axis, [0]))], axis)

    pairs = zip(specimen.inputs, specimen.model.inputs, strict=True)
    with np.errstate(over="ignore"):
        inputs = [summed(array, item.batch or 0) for array, item in pairs]
    if not all(map(_is_plain, [*inputs, *asked.plain.arrays])):  # something is beyond the type
        return None

    def sides(plain: Outputs, twin: Outputs) -> tuple[Outputs, Outputs]:
        others, still = plain.instances(following), twin.instances([count] * count)
        triples = zip(plain.arrays, others.arrays, still.arrays, strict=True)
        with np.errstate(over="ignore", invalid="ignore"):
            arrays = tuple((np.float64(a) + b - c).astype(a.dtype) for a, b, c in triples)
        return replace(plain, arrays=arrays), twin.instances(range(count))

    return OtherWay(specimen.with_inputs(inputs), sides)


def is_linear(layer: Layer) -> bool:
    plain = layer.config.get("activation") in (None, "linear")
    return layer.kind in KINDS and plain and not layer.kwargs.get("training")


def _is_plain(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())
