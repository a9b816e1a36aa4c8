"""Neuron effect block: zeroes the weights that lead out of the chosen neurons.

They stand in the layers that read the neuron, behind layers that keep each channel to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Layer
from outvote.core.parts import ChannelReader, NeuronPlaces
from outvote.mutate.neurons import neurons_of, pick
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools

NAME, GROUP = "NEB", "lemon"
TITLE = "neuron effect block"
NEEDS = "neurons"


@dataclass(frozen=True)
class Outgoing:
    """Weights that read a layer's neurons, each of them `repeats` times."""

    layer: Layer
    reader: ChannelReader
    repeats: int


@dataclass(frozen=True)
class Site:
    layer: Layer
    outgoing: tuple[Outgoing, ...]


def sites(subject: Subject, tools: Tools) -> Sequence[Site]:
    found = []
    neurons = neurons_of(subject, tools)
    for layer in neurons.layers(subject):
        count, axis = neurons.count(layer), neurons.places.channel_axis(layer)
        if not subject.is_known(layer):
            continue
        shape = subject.specs[layer.name][0].shape
        if not -len(shape) <= axis < len(shape) or shape[axis] != count:
            continue
        try:
            outgoing = tuple(_Ways(subject, neurons.places, count).out_of(layer.name, 1, axis))
        except _Blocked:
            continue
        if outgoing:
            found.append(Site(layer, outgoing))
    return found


def apply(subject: Subject, site: Site, tools: Tools, rng: np.random.Generator) -> Subject:
    neurons = neurons_of(subject, tools)
    count = neurons.count(site.layer)
    chosen = pick(count, rng)
    for way in site.outgoing:
        layer = subject.model.layer(way.layer.name)
        rows = neurons.places.flat_rows(chosen, count, way.repeats)
        weights = list(layer.weights)
        kernel = weights[way.reader.weight]
        value: Array = np.array(tools.blobs.get(kernel.digest))
        np.moveaxis(value, way.reader.axis, 0)[rows] = 0
        weights[way.reader.weight] = replace(kernel, digest=tools.blobs.put(value))
        subject = subject.with_object(layer, weights=tuple(weights))
    return subject


class _Blocked(Exception):  # noqa: N818 - no error: the way out of the neurons cannot be followed
    pass


@dataclass(frozen=True)
class _Ways:
    subject: Subject
    places: NeuronPlaces
    count: int

    def out_of(self, name: str, repeats: int, axis: int) -> Iterator[Outgoing]:
        """Who reads the neurons, which lie along an axis of the tensor of that name."""
        readers = self.subject.readers(name)
        if any(ref.producer == name for ref in self.subject.model.outputs) or not readers:
            raise _Blocked  # the model's own output has no weights behind it
        rank = len(self.subject.specs[name][0].shape)
        for layer in readers:
            reader = self.places.reader(layer)
            if reader is not None and self._reads(layer, reader, repeats):
                if reader.of % rank != axis % rank:
                    raise _Blocked
                yield Outgoing(layer, reader, repeats)
            elif self.places.keeps_channels(layer) and self.subject.has_one_input(layer):
                yield from self.out_of(layer.name, repeats, axis)
            elif self.places.flattens(layer) and repeats == 1:
                yield from self.out_of(layer.name, self._spread(layer), -1)
            else:
                raise _Blocked

    def _reads(self, layer: Layer, reader: ChannelReader, repeats: int) -> bool:
        shape = layer.weights[reader.weight].shape
        known = -len(shape) <= reader.axis < len(shape)
        return known and shape[reader.axis] == self.count * repeats

    def _spread(self, layer: Layer) -> int:
        """How often each channel comes in what is laid flat."""
        size = self.subject.reads(layer)[0].size
        if size is None:
            raise _Blocked
        return size // self.count
