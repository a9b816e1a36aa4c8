"""Several Keras models as one function: their answers, their neurons, and gradients of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from outvote.core.arrays import Array
from outvote.core.model import Layer, Model
from outvote.dialects.keras.workers.keras3.backends import to_tensor
from outvote.dialects.keras.workers.keras3.graph import Graph, States, Tensor, Workshop
from outvote.worker.explore.neurons import Activations
from outvote.worker.main import Refused

# They move or copy numbers, or prepare the input: their outputs are no decisions of the network.
NO_NEURONS = (
    *("InputLayer", "Flatten", "Reshape", "Permute", "RepeatVector", "Identity", "Masking"),
    *("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianDropout"),
    *("AlphaDropout", "GaussianNoise", "ActivityRegularization", "Rescaling", "Normalization"),
    *("Cropping1D", "Cropping2D", "Cropping3D", "Resizing", "CenterCrop"),
    *("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", "UpSampling1D", "UpSampling2D"),
)
_FEW_CHANNELS = 32  # convolutions narrower than this are slower through oneDNN than without it


@dataclass(frozen=True)
class NeuronLayer:
    """A layer whose channels count as neurons."""

    name: str
    kind: str
    width: int
    axis: int  # of the channels


class OneModel:
    """A model, which of its layers have neurons, and how its output becomes an answer."""

    def __init__(self, model: Model, workshop: Workshop, kind: str, skip: Sequence[str]) -> None:
        self.model = model
        self._graph = Graph(model, workshop, lambda name: None)
        self._kind = kind
        self._skip = {name.lower() for name in skip}
        self.layers: tuple[NeuronLayer, ...] = ()
        self.width = 0
        self._is_probability = False

    def prepare(self, feeds: Sequence[Array]) -> None:
        """Make the layers and look at what they give for a few inputs."""
        states, output = self._walk([to_tensor(feed) for feed in feeds])
        found = [self._neurons_of(layer, states) for layer in self.model.layers]
        self.layers = tuple(layer for layer in found if layer is not None)
        if self._kind == "any":  # only the neurons count
            return
        values = np.asarray(ops.convert_to_numpy(output), np.float64)
        if values.ndim != 2:
            raise Refused(
                f"model {self.model.name!r} gives an output of shape {values.shape[1:]} for each "
                "input; only one row of classes or values can be compared here"
            )
        sums = np.abs(values.sum(axis=1) - 1)
        single = values.shape[1] == 1
        self._is_probability = bool((values >= -1e-6).all() and (single or (sums < 1e-2).all()))
        self.width = 2 if self._kind == "classes" and single else values.shape[1]

    def variables(self) -> list[Any]:
        return self._graph.variables()

    def answer(self, feeds: Sequence[Tensor]) -> Tensor:
        return self._answer(self._walk(feeds)[1])

    def forward(self, feeds: Sequence[Tensor], reduce: bool) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The answer, the neurons in a row, and (to scale them) lows and highs of the layers."""
        states, output = self._walk(feeds)
        rows, lows, highs = [], [], []
        for layer in self.layers:
            tensor = ops.cast(states[layer.name][0], "float32")
            axes = [axis for axis in range(1, len(tensor.shape)) if axis != layer.axis]
            rows.append(ops.mean(tensor, axis=axes) if axes else tensor)
            if reduce:
                every = list(range(1, len(tensor.shape)))
                lows.append(ops.min(tensor, axis=every))
                highs.append(ops.max(tensor, axis=every))
        neurons = ops.concatenate(rows, axis=1) if rows else ops.zeros((len(feeds[0]), 0))
        extra = [ops.stack(lows, axis=1), ops.stack(highs, axis=1)] if reduce and rows else []
        return self._answer(output), neurons, extra

    def activations(self, neurons: Array, lows: Array, highs: Array) -> Activations:
        return Activations(neurons, lows, highs, [layer.width for layer in self.layers])

    def _walk(self, feeds: Sequence[Tensor]) -> tuple[States, Tensor]:
        model = self.model
        states: States = {item.name: [f] for item, f in zip(model.inputs, feeds, strict=True)}
        for layer in model.layers:
            states[layer.name] = self._graph.call(layer, states)
        ref = model.outputs[0]
        return states, states[ref.producer][ref.index]

    def _neurons_of(self, layer: Layer, states: States) -> NeuronLayer | None:
        tensor = states[layer.name][0]
        shape = tensor.shape
        named = {layer.name.lower(), layer.kind.lower()}
        floating = "float" in keras.backend.standardize_dtype(tensor.dtype)
        if layer.kind in NO_NEURONS or named & self._skip or len(shape) < 2 or not floating:
            return None
        first = layer.config.get("data_format") == "channels_first" and len(shape) > 2
        axis = 1 if first else len(shape) - 1
        return NeuronLayer(layer.name, layer.kind, int(shape[axis]), axis)

    def _answer(self, output: Tensor) -> Tensor:
        """Probabilities of classes (of logits, their softmax), or the values as they are."""
        output = ops.cast(output, "float32")
        if self._kind != "classes":
            return output
        if self.width == 2 and output.shape[1] == 1:
            positive = output if self._is_probability else ops.sigmoid(output)
            return ops.concatenate([1 - positive, positive], axis=1)
        return output if self._is_probability else ops.softmax(output, axis=-1)


def few_channels(models: Sequence[Model]) -> bool:
    """Whether all convolutions are narrow."""
    widths = [
        int(layer.config.get("filters") or 0)
        for model in models
        for layer in model.layers
        if "Conv" in layer.kind
    ]
    return bool(widths) and max(widths) < _FEW_CHANNELS
