"""Neurons are what a layer gives: turning the sign of one turns one channel of its output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.dialect import dialect
from outvote.core.model import REF, Input, Layer, Model, Ref, Weight
from outvote.core.states import State
from outvote.dialects.keras.reference import strict_reference
from outvote.mutate.neurons import Neurons
from outvote.mutate.subject import Subject

CONV: dict[str, Any] = {"padding": "valid", "activation": "linear", "use_bias": True}
# Configuration, shape of an instance, weights with their shapes, neurons, weights into each.
KINDS: dict[str, tuple[dict[str, Any], tuple[int, ...], dict[str, tuple[int, ...]], int, int]] = {
    "Dense": (
        {"units": 3, "activation": "linear", "use_bias": True},
        (4,),
        {"kernel": (4, 3), "bias": (3,)},
        *(3, 4),
    ),
    "Conv2D": (
        {"filters": 4, "kernel_size": [2, 3], **CONV},
        (5, 5, 2),
        {"kernel": (2, 3, 2, 4), "bias": (4,)},
        *(4, 12),
    ),
    "Conv1DTranspose": (
        {"filters": 5, "kernel_size": [3], **CONV},
        (4, 2),
        {"kernel": (3, 5, 2), "bias": (5,)},
        *(5, 6),
    ),
    "Conv2DTranspose": (
        {"filters": 8, "kernel_size": [2, 2], **CONV},
        (3, 3, 4),
        {"kernel": (2, 2, 8, 4), "bias": (8,)},
        *(8, 16),
    ),
    "Conv3DTranspose": (  # as many out as in: nothing but the axis tells them apart
        {"filters": 3, "kernel_size": [2, 2, 2], **CONV},
        (2, 2, 2, 3),
        {"kernel": (2, 2, 2, 3, 3), "bias": (3,)},
        *(3, 24),
    ),
    "DepthwiseConv2D": (
        {"kernel_size": [2, 2], "depth_multiplier": 2, **CONV},
        (3, 3, 3),
        {"kernel": (2, 2, 3, 2), "bias": (6,)},
        *(6, 4),
    ),
    "SeparableConv2D": (  # as many neurons as its first kernel multiplies by: they are no columns
        {"filters": 2, "kernel_size": [3, 3], "depth_multiplier": 2, **CONV},
        (4, 4, 3),
        {"depthwise_kernel": (3, 3, 3, 2), "pointwise_kernel": (1, 1, 6, 2), "bias": (2,)},
        *(2, 6),
    ),
    "SeparableConv1D": (  # more numbers in the first kernel
        {"filters": 3, "kernel_size": [5], "depth_multiplier": 1, **CONV},
        (6, 4),
        {"depthwise_kernel": (5, 4, 1), "pointwise_kernel": (1, 4, 3), "bias": (3,)},
        *(3, 4),
    ),
}


def keras_neurons(blobs: BlobStore) -> Neurons:
    return Neurons(dialect("keras").neurons, blobs)


def subject_of(
    kind: str, config: dict[str, Any], shapes: dict[str, tuple[int, ...]], blobs: BlobStore
) -> Subject:
    rng = np.random.default_rng(1)
    weights = tuple(
        Weight(name, blobs.put(rng.normal(size=shape).astype("float32")), shape)
        for name, shape in shapes.items()
    )
    layer = Layer("layer", kind, config, [{REF: ["x", 0]}], weights=weights)
    model = Model("m", (Input("x", (None, 1), "float32"),), (layer,), (Ref("layer"),), "keras")
    return Subject.of(model, {"layer": [[[None, 1], "float32"]]})


def output(subject: Subject, x: Array, blobs: BlobStore) -> Array:
    (layer,) = subject.model.layers
    found = strict_reference(layer, [blobs.get(w.digest) for w in layer.weights], [State(x)])
    assert found is not None
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_neuron_is_a_channel_of_the_output(kind: str, tmp_path: Path) -> None:
    config, shape, shapes, neurons, incoming = KINDS[kind]
    blobs = BlobStore(tmp_path)
    subject = subject_of(kind, config, shapes, blobs)
    (layer,) = subject.model.layers
    assert keras_neurons(blobs).count(layer) == neurons
    assert keras_neurons(blobs).incoming(layer) == incoming
    x = np.random.default_rng(2).normal(size=(2, *shape)).astype("float32")
    before = output(subject, x, blobs)
    assert before.shape[-1] == neurons
    for neuron in range(neurons):

        def negated(columns: Array, place: int = neuron) -> Array:
            changed = columns.copy()
            changed[:, place] *= -1
            return changed

        after = output(keras_neurons(blobs).changed(subject, layer, negated), x, blobs)
        signs = np.where(np.arange(neurons) == neuron, -1.0, 1.0)
        np.testing.assert_allclose(after, before * signs, rtol=1e-6, atol=1e-9)


def test_a_wrapped_layer_has_the_neurons_of_what_it_wraps(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    inner = {"class_name": "Conv2DTranspose", "module": "keras.layers", "config": {"filters": 8}}
    shapes = {"kernel": (2, 2, 8, 4), "bias": (8,)}
    subject = subject_of("TimeDistributed", {"layer": inner}, shapes, blobs)
    assert keras_neurons(blobs).count(subject.model.layers[0]) == 8
