"""Neuron effect block: zeroes the weights that lead out of the chosen neurons.

They stand in the layers that read the neuron, behind layers that keep each channel to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.dialects.keras.mutate.neurons import layers_with_neurons, neuron_count, pick
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.subject import Subject

NAME, GROUP = "NEB", "lemon"
TITLE = "neuron effect block"
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


@dataclass(frozen=True)
class Outgoing:
    """A kernel that reads a layer's neurons; each of them `repeats` times, one after the other."""

    reader: Layer
    repeats: int


@dataclass(frozen=True)
class Site:
    layer: Layer
    outgoing: tuple[Outgoing, ...]


def sites(subject: Subject, tools: KerasTools) -> Sequence[Site]:
    found = []
    for layer in layers_with_neurons(subject, tools.blobs):
        count = neuron_count(layer, tools.blobs)
        if subject.specs[layer.name][0].place[-1:] != (count,):
            continue
        try:
            outgoing = tuple(_outgoing(subject, layer.name, 1, count))
        except _Blocked:
            continue
        if outgoing:
            found.append(Site(layer, outgoing))
    return found


def apply(subject: Subject, site: Site, tools: KerasTools, rng: np.random.Generator) -> Subject:
    count = neuron_count(site.layer, tools.blobs)
    chosen = pick(count, rng)
    for outgoing in site.outgoing:
        reader = subject.model.layer(outgoing.reader.name)
        rows = (chosen[None, :] + count * np.arange(outgoing.repeats)[:, None]).ravel()
        kernel = reader.weights[0]
        value: Array = np.array(tools.blobs.get(kernel.digest))
        value[..., rows, :] = 0
        changed = replace(kernel, digest=tools.blobs.put(value))
        subject = subject.with_object(reader, weights=(changed, *reader.weights[1:]))
    return subject


class _Blocked(Exception):  # noqa: N818 - no error: the way out of the neurons cannot be followed
    pass


def _outgoing(subject: Subject, name: str, repeats: int, count: int) -> Iterator[Outgoing]:
    readers = subject.readers(name)
    if any(ref.producer == name for ref in subject.model.outputs) or not readers:
        raise _Blocked  # the model's own output has no weights behind it
    for reader in readers:
        kernel = reader.weights[0].shape if reader.weights else ()
        if reader.kind in _READERS and kernel[-2:-1] == (count * repeats,):
            yield Outgoing(reader, repeats)
        elif reader.kind.startswith(_CHANNELWISE) and subject.has_one_input(reader):
            yield from _outgoing(subject, reader.name, repeats, count)
        elif reader.kind == "Flatten" and repeats == 1:
            spread = subject.reads(reader)[0].size
            if spread is None:
                raise _Blocked
            yield from _outgoing(subject, reader.name, spread // count, count)
        else:
            raise _Blocked
