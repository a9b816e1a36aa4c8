"""Builds chains of new layers behind a tensor, and leads any shape back to the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from outvote.core.model import Json, Layer, Ref, find_refs
from outvote.dialects.keras.mutate.catalogue import WITHOUT_CHANCE, Kind
from outvote.dialects.keras.mutate.maker import DrawWeight, by_place, drawn_weight
from outvote.dialects.keras.mutate.tools import KerasTools
from outvote.mutate.registry import Impossible
from outvote.mutate.subject import Spec, Subject

_TRIES = 12
_MOST_NUMBERS = 1024  # per instance; larger tensors are cut before a layer is put on them
# A few shapes per rank, odd and even: enough to vary, few enough for compilers to know them.
SHAPES: Mapping[int, tuple[tuple[int, ...], ...]] = {
    1: ((12,), (7,), (1,)),
    2: ((6, 4), (5, 3), (8, 2), (7, 1), (1, 4)),
    3: ((6, 8, 4), (5, 7, 2), (4, 4, 3), (5, 1, 2)),
    4: ((4, 4, 3, 2), (3, 5, 4, 2)),
    5: ((2, 3, 4, 3, 2),),
}
# Of what does not take any place: three colours, first or last; one number of each instance.
PLACES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    **dict.fromkeys(WITHOUT_CHANCE, ((6, 8, 3), (3, 5, 3))),
    "HashedCrossing": ((1,),),
}
_BOUNDARIES = [-1.0, -0.5, 0.0, 0.5, 1.0]  # between the whole numbers that floats turn into


class Chain:
    """New layers, one behind the other, that are not part of a model yet."""

    def __init__(
        self,
        subject: Subject,
        start: Ref,
        tools: KerasTools,
        rng: np.random.Generator,
        weights: DrawWeight = drawn_weight,
    ) -> None:
        self._subject = subject
        self._tools = tools
        self._rng = rng
        self._weights = weights
        self._start = start
        self.end = start
        self.layers: list[Layer] = []
        self.specs: dict[str, tuple[Spec, ...]] = {}

    @property
    def spec(self) -> Spec:
        found = self.specs.get(self.end.producer)
        return found[self.end.index] if found else self._subject.spec(self.end)

    def add(
        self,
        kind: str,
        parameters: Mapping[str, Any],
        also: Sequence[Ref] = (),
        joined: bool = False,
        keep: Spec | None = None,
        last: bool = False,
        named: Mapping[str, Json] | None = None,
    ) -> bool:
        """Put a layer at the end; False where Keras refuses it or it would not keep the shape.

        Nothing will read the `last` one, so it may give another shape than it announces. `named`
        are arguments of its call, with references to tensors.
        """
        plain = [self.end, *also]
        refs = [*plain, *find_refs(named or {})]
        given = [self.specs[r.producer][r.index] if r.producer in self.specs
                 else self._subject.spec(r) for r in refs]  # fmt: skip
        placed = by_place(named or {}, len(plain))
        made = self._tools.maker.make(kind, parameters, given, joined, not last, placed)
        if made is None or not made.outputs or (keep is not None and made.outputs != (keep,)):
            return False
        name = self._unused(kind.lower())
        self.layers.append(self._tools.maker.layer(made, name, refs, self._rng, self._weights))
        self.specs[name] = made.outputs
        self.end = Ref(name)
        return True

    def must(self, kind: str, parameters: Mapping[str, Any], **more: Any) -> None:
        if not self.add(kind, parameters, **more):
            raise Impossible(f"{kind} {dict(parameters)} at {self.spec}")

    def draw(self, kinds: Sequence[Kind], keep: bool) -> str:
        """Put a layer of one of these kinds at the end, with parameters drawn for the place."""
        activations = self._tools.catalogue.activations
        for _ in range(_TRIES):
            kind = kinds[int(self._rng.integers(len(kinds)))]
            parameters = kind.draw(self.spec.place, self._rng, activations, keep)
            also = [self._partner()] * (kind.arity - 1)
            wanted = self.spec if keep else None
            if self.add(kind.name, parameters, also, kind.joined, wanted):
                return kind.name
        raise Impossible(f"none of {len(kinds)} kinds at {self.spec}")

    def reshape(self, place: Sequence[int]) -> None:
        """Lead the tensor to another shape: laid flat, cut or filled with zeros, folded anew."""
        size, wanted = self.spec.size, int(np.prod(place))
        if size is None:
            raise Impossible(f"a free dimension in {self.spec}")
        if tuple(self.spec.place) == tuple(place):
            return
        if size != wanted:
            self.must("Reshape", {"target_shape": [size, 1]})
            if size > wanted:
                self.must("Cropping1D", {"cropping": [0, size - wanted]})
            else:
                self.must("ZeroPadding1D", {"padding": [0, wanted - size]})
        self.must("Reshape", {"target_shape": list(place)})

    def fit(self, kind: Kind) -> None:
        """Lead the tensor to a shape and dtype that the kind takes."""
        size = self.spec.size
        small = size is not None and size <= _MOST_NUMBERS
        if len(self.spec.place) not in kind.ranks or not small or kind.name in PLACES:
            rank = int(self._rng.choice(kind.ranks))
            shapes = PLACES.get(kind.name) or SHAPES[rank]
            self.reshape(shapes[int(self._rng.integers(len(shapes)))])
        if kind.whole_numbers and self.spec.is_float:
            self.round()

    def round(self) -> None:
        """Turn floats into whole numbers."""
        self.must("Discretization", {"bin_boundaries": _BOUNDARIES})

    def restore(self, spec: Spec) -> None:
        """Lead back to a shape and a type, such as those that the chain began with."""
        place = [n for n in spec.place if n is not None]
        if len(place) != len(spec.place):
            raise Impossible(f"a free dimension in {spec}")
        if self.spec.dtype != spec.dtype:
            if not spec.is_float:
                raise Impossible(f"{self.spec.dtype} cannot become {spec.dtype}")
            self.must("Rescaling", {"scale": 1.0, "dtype": spec.dtype})
        self.reshape(place)
        if self.spec != spec:
            raise Impossible(f"{self.spec} is not {spec}")

    def inserted(self) -> Subject:
        return self._subject.inserted(self._start, self.layers, self.specs)

    def _partner(self) -> Ref:
        """A second tensor of the same shape: an earlier one of the graph, or the same again."""
        before = self._computed_before()
        found = [
            Ref(name, index)
            for name, specs in self._subject.specs.items()
            for index, spec in enumerate(specs)
            if spec == self.spec and name in before
        ]
        return found[int(self._rng.integers(len(found)))] if found else self.end

    def _computed_before(self) -> set[str]:
        names = [item.name for item in self._subject.model.inputs]
        names += [layer.name for layer in self._subject.model.layers]
        return set(names[: names.index(self._start.producer) + 1])

    def _unused(self, name: str) -> str:
        number = 1
        while f"{name}_{number}" in self._subject.specs or f"{name}_{number}" in self.specs:
            number += 1
        return f"{name}_{number}"
