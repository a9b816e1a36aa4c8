"""Chains of new nodes behind a tensor, and the way back to its shape and type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.arrays import Array
from outvote.core.model import Json, Layer, Ref, Weight
from outvote.dialects.onnx.mutate.tools import OnnxTools
from outvote.dialects.onnx.nouns.node import WEIGHT, Origin, opset_of, origin_of, ref, with_origin
from outvote.dialects.onnx.nouns.types import CODES
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject

_MOST_GIVEN = 6  # tensors besides the first that new nodes may read
_OLDEST = 11  # the set in which Slice and Pad read what they do as tensors


def computed_before(subject: Subject, start: Ref) -> list[Ref]:
    """All tensors that are there when a tensor is."""
    names = [item.name for item in subject.model.inputs]
    names += [layer.name for layer in subject.model.layers]
    before = names[: names.index(start.producer) + 1]
    return [Ref(name, index) for name in before for index in range(len(subject.specs[name]))]


class Splice:
    """New nodes, one behind the other, that are not part of a graph yet."""

    def __init__(
        self, subject: Subject, start: Ref, tools: OnnxTools, rng: np.random.Generator
    ) -> None:
        self._subject = subject
        self._start = start
        self._tools = tools
        self._rng = rng
        self._origin = origin_of(subject.model.layers[0])
        self.end = start
        self.layers: list[Layer] = []
        self.specs: dict[str, tuple[Spec, ...]] = {}

    @property
    def spec(self) -> Spec:
        found = self.specs.get(self.end.producer)
        return found[self.end.index] if found else self._subject.spec(self.end)

    def draw(self, nodes: int = 1, *, keep: bool = False, kinds: Sequence[str] = ()) -> None:
        """Put nodes of any kind behind the start; raises Impossible where none is found."""
        others = [r for r in computed_before(self._subject, self._start) if r != self._start]
        chosen = self._rng.permutation(len(others))[:_MOST_GIVEN]
        given = [self._start, *(others[int(place)] for place in chosen)]
        found = self._tools.drawn(
            self._subject, given, self._rng, nodes=nodes, keep=keep, kinds=kinds
        )
        if found is None:
            raise Impossible(f"no node at {self.spec}")
        layers, specs = found
        self.layers += layers
        self.specs.update(specs)
        self.end = Ref(layers[-1].name)

    def restore(self, wanted: Spec) -> None:
        """Lead back to a form: another type, laid flat, cut or filled with zeros, folded anew."""
        if self.spec == wanted:
            return
        if opset_of(self._subject.model.layers[0]) < _OLDEST:
            raise Impossible("an old set")
        size, asked = self.spec.size, wanted.size
        if size is None or asked is None or self.spec.batch != wanted.batch:
            raise Impossible(f"{self.spec} cannot become {wanted}")
        if wanted.batch not in (None, 0):
            raise Impossible(f"instances lie along axis {wanted.batch}")
        if self.spec.dtype != wanted.dtype:
            self._add("Cast", Spec(self.spec.shape, wanted.dtype, wanted.batch),
                      to=CODES[wanted.dtype])  # fmt: skip
        if self.spec.shape != wanted.shape:
            self._refold(size, asked, wanted)

    def _refold(self, size: int, asked: int, wanted: Spec) -> None:
        outer = wanted.shape[:1] if wanted.batch == 0 else ()
        copied = [0] * len(outer)  # a Reshape to zero keeps the size
        axis = len(outer)
        if size != asked:
            self._add("Reshape", self._flat(outer, size, wanted), np.array([*copied, -1]))
            flat = self._flat(outer, asked, wanted)
            if size > asked:
                bounds = [np.array([n]) for n in (0, asked, axis)]
                self._add("Slice", flat, *bounds)
            else:
                pads = [0] * (2 * axis + 1) + [asked - size]
                self._add("Pad", flat, np.array(pads))
        place = [int(n or 0) for n in wanted.shape[axis:]]
        self._add("Reshape", wanted, np.array([*copied, *place], np.int64))

    def _flat(self, outer: tuple[int | None, ...], size: int, wanted: Spec) -> Spec:
        return Spec((*outer, size), wanted.dtype, wanted.batch)

    def _add(self, kind: str, spec: Spec, *constants: Array, **config: Json) -> None:
        name = self._unused(kind.lower())
        weights = [
            Weight(f"{name}_{place}", self._tools.blobs.put(array.astype(np.int64)), array.shape)
            for place, array in enumerate(constants)
        ]
        args: list[Any] = [ref(self.end.producer, self.end.index)]
        args += [{WEIGHT: place} for place in range(len(weights))]
        origin = Origin(self._origin.opset, self._origin.ir)
        layer = Layer(name, kind, config, args, weights=tuple(weights), batch=(spec.batch,))
        self.layers.append(with_origin(layer, origin))
        self.specs[name] = (spec,)
        self.end = Ref(name)

    def inserted(self) -> Subject:
        """The chain in the place of the tensor that it begins at."""
        return self._subject.inserted(self._start, self.layers, self.specs, self.end)

    def _unused(self, stem: str) -> str:
        taken: Mapping[str, Any] = {**self._subject.specs, **self.specs}
        number = 1
        while f"{stem}_{number}" in taken:
            number += 1
        return f"{stem}_{number}"
