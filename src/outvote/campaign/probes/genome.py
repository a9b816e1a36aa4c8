"""A case as a chromosome (AUDEE, section 2.4.2): its input, its weights, or both as one vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Layer, Model, Weight

_ZEROS = 0.1  # deviation of genes that are all zero: they have no scale of their own


@dataclass(frozen=True)
class Part:
    """A stretch of the chromosome: an input, or one weight of a layer."""

    shape: tuple[int, ...]
    dtype: str
    deviation: float
    low: float = -np.inf  # genes beyond are led back when the vector becomes a case
    high: float = np.inf
    owner: str = ""  # the layer whose weight it is
    name: str = ""

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Genome:
    """How vectors become models and inputs. One input of the case is the one that evolves."""

    def __init__(
        self, model: Model, inputs: Sequence[Array], levels: Sequence[str], blobs: BlobStore
    ) -> None:
        """`inputs` hold one row each."""
        self.model = model
        self._inputs = [np.asarray(array) for array in inputs]
        self._blobs = blobs
        self._evolves = tuple(levels)
        values: list[Array] = []
        self._parts: list[Part] = []
        if "input" in levels:
            for array in self._inputs:
                self._parts.append(_input_part(array))
                values.append(array[0])
        if "weight" in levels:
            for layer, weight in _weights(model):
                value = np.asarray(blobs.get(weight.digest))
                self._parts.append(_weight_part(layer, weight, value))
                values.append(value)
        flat = [np.asarray(value, np.float32).reshape(-1) for value in values]
        self.first = np.concatenate(flat) if flat else np.zeros(0, np.float32)
        deviations = [np.full(part.size, part.deviation, np.float32) for part in self._parts]
        self.scale = np.concatenate(deviations) if deviations else np.zeros(0, np.float32)

    @property
    def shares_weights(self) -> bool:
        """Whether a whole population is one batch of one model."""
        return "weight" not in self._evolves

    def inputs(self, rows: Array) -> list[Array]:
        """What the chromosomes are fed: one row for each."""
        if "input" not in self._evolves:
            return [np.repeat(array, len(rows), axis=0) for array in self._inputs]
        return [
            np.stack([part_of(row, start, part) for row in rows])
            for start, part in self._placed()
            if not part.owner
        ]

    def model_of(self, row: Array) -> Model:
        """The model with the weights of one chromosome."""
        if self.shares_weights:
            return self.model
        digests = {
            (part.owner, part.name): self._blobs.put(part_of(row, start, part))
            for start, part in self._placed()
            if part.owner
        }
        return replace(self.model, layers=tuple(_with(x, digests) for x in self.model.layers))

    def _placed(self) -> list[tuple[int, Part]]:
        starts = np.cumsum([0, *(part.size for part in self._parts)])
        return [(int(start), part) for start, part in zip(starts, self._parts, strict=False)]


def part_of(row: Array, start: int, part: Part) -> Array:
    """One array of a chromosome, of its own type and within its limits."""
    values = np.clip(row[start : start + part.size], part.low, part.high)
    if np.dtype(part.dtype).kind != "f":
        values = np.rint(values)
    with np.errstate(over="ignore"):
        return np.asarray(values.reshape(part.shape).astype(part.dtype))


def _input_part(array: Array) -> Part:
    """Whole numbers are codes (words, say): they stay among those that the input holds."""
    if array.dtype.kind == "f":
        return Part(array.shape[1:], array.dtype.name, _deviation(array))
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    return Part(array.shape[1:], array.dtype.name, max(1.0, _deviation(array)), low, high)


def _weight_part(layer: Layer, weight: Weight, value: Array) -> Part:
    low = 0.0 if "variance" in weight.name else -np.inf  # a negative one is no variance
    return Part(
        weight.shape,
        value.dtype.name,
        _deviation(value),
        low=low,
        owner=layer.name,
        name=weight.name,
    )


def _deviation(value: Array) -> float:
    """The standard deviation; of values that are all alike their size, if they have one."""
    wide = np.asarray(value, np.float64)
    return float(wide.std() or np.abs(wide).mean() or _ZEROS) if wide.size else _ZEROS


def _weights(model: Model) -> list[tuple[Layer, Weight]]:
    """The float weights of all layer objects, each once."""
    return [
        (layer, weight)
        for layer in model.layers
        if layer.shares is None
        for weight in layer.weights
        if "seed" not in weight.name
    ]


def _with(layer: Layer, digests: dict[tuple[str, str], str]) -> Layer:
    owner = layer.shares or layer.name
    weights = tuple(
        replace(weight, digest=digests.get((owner, weight.name), weight.digest))
        for weight in layer.weights
    )
    return layer if weights == layer.weights else replace(layer, weights=weights)
