"""New layers: what a kind with given parameters becomes at a place, and weights for it."""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from outvote.core import codec
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import REF, Json, Layer, Ref, Weight, find_refs, with_refs
from outvote.core.protocol import LayerMade, MakeLayer
from outvote.core.target import Run
from outvote.mutate import extremes
from outvote.mutate.subject import Spec
from outvote.run.pool import Ask
from outvote.run.settle import settled

_REMEMBERED = 4096
DrawWeight = Callable[[str, tuple[int, ...], str, np.random.Generator], Array]


@dataclass(frozen=True)
class Blueprint:
    """A layer as Keras would make it: serialised, its weights' shapes, its outputs."""

    spec: Mapping[str, Any]
    weights: tuple[tuple[str, tuple[int, ...], str], ...]
    outputs: tuple[Spec, ...]
    joined: bool
    firsts: tuple[Array, ...] = ()  # values of the weights that are not floats
    kwargs: Mapping[str, Any] = field(default_factory=dict)


class Maker:
    """Asks a worker what layers become, and remembers. `refused` counts what Keras would not."""

    def __init__(self, ask: Ask, blobs: BlobStore) -> None:
        self._ask = ask
        self._made: OrderedDict[str, Blueprint | None] = OrderedDict()
        self.blobs = blobs
        self.refused = 0

    def make(
        self,
        kind: str,
        parameters: Mapping[str, Any],
        given: Sequence[Spec],
        joined: bool = False,
        tried: bool = True,
        named: Mapping[str, Json] | None = None,
    ) -> Blueprint | None:
        """None where Keras refuses the combination. `named`: see `MakeLayer`.

        With `tried` also where the layer gives another shape than it announces, so that no
        layer behind it could be built.
        """
        request = MakeLayer(
            kind=kind,
            parameters=parameters,
            given=tuple((spec.shape, spec.dtype) for spec in given),
            joined=joined,
            tried=tried,
            named=named or {},
        )
        key = json.dumps(codec.written(request)[0], sort_keys=True)
        if key not in self._made:
            self._made[key] = self._asked(request)
            if len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        self.refused += self._made[key] is None
        return self._made[key]

    def _asked(self, request: MakeLayer) -> Blueprint | None:
        run = self._answer(request)
        if not run.ok:
            return None
        reply = run.reply
        outputs = tuple(Spec(shape, dtype) for shape, dtype in reply.outputs)
        kwargs = {**reply.kwargs, **request.named}
        return Blueprint(reply.spec, reply.weights, outputs, request.joined, reply.firsts, kwargs)

    def _answer(self, request: MakeLayer) -> Run[LayerMade]:
        """What Keras says of a layer; of one that it dies of, what it says without trying it."""
        run = settled(self._ask, request, self._ask(request))
        if run.outcome.is_death:  # that must not keep the layer from the other targets
            run = self._ask(replace(request, tried=False))
        return run

    def layer(
        self,
        made: Blueprint,
        name: str,
        reads: Sequence[Ref],
        rng: np.random.Generator,
        draw: DrawWeight | None = None,
    ) -> Layer:
        """A layer of the graph, with drawn weights."""
        draw = draw or drawn_weight
        plain = len(reads) - len(list(find_refs(made.kwargs)))
        refs: list[Any] = [{REF: [ref.producer, ref.index]} for ref in reads[:plain]]
        firsts = iter(made.firsts)
        weights = []
        for label, shape, dtype in made.weights:
            floats = "float" in dtype
            value = draw(label, shape, dtype, rng) if floats else next(firsts)
            weights.append(Weight(label, self.blobs.put(value), tuple(value.shape)))
        return Layer(
            name=name,
            kind=made.spec["kind"],
            config={**made.spec["config"], "name": name},
            args=[refs] if made.joined else refs,
            kwargs=with_refs(made.kwargs, lambda ref: reads[ref.index]),
            weights=tuple(weights),
            origin={key: made.spec[key] for key in ("module", "registered", "build")},
        )


def drawn_weight(name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Values of a sensible size for a weight: what goes through the layer keeps its scale."""
    if "variance" in name:
        value = rng.uniform(0.5, 1.5, shape)
    elif name.startswith(("gamma", "scale")):
        value = 1 + 0.2 * rng.standard_normal(shape)
    elif len(shape) < 2:
        value = 0.1 * rng.standard_normal(shape)
    else:
        fan_in = max(1, int(np.prod(shape[:-1])))
        value = rng.standard_normal(shape) / np.sqrt(fan_in)
    return np.asarray(value, np.float32 if dtype == "bfloat16" else dtype)


def pooled_weight(name: str, shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Finite extremes; what is a variance is not negative."""
    found = extremes.filled(extremes.one_of(extremes.FINITE, rng), shape, dtype, rng)
    return np.abs(found) if "variance" in name else found


def by_place(named: Mapping[str, Json], plain: int) -> dict[str, Json]:
    """Arguments of a call with the places of their tensors, behind so many without a name."""
    places = itertools.count(plain)
    return {
        name: with_refs(value, lambda ref: Ref("given", next(places)))
        for name, value in named.items()
    }
