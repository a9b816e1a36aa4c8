"""Runs neutral models: call by call, or as one graph that something compiles or converts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from outvote.core.blobs import BlobStore
from outvote.core.cuts import one_layer
from outvote.core.model import Layer, Model, Ref, digest_of, find_refs
from outvote.core.states import State
from outvote.dialects.torch_export.nouns.node import SIZE, tensors_of
from outvote.dialects.torch_export.workers.shared.build import graph_module
from outvote.dialects.torch_export.workers.shared.tensors import (
    Weights,
    arguments,
    as_number,
    as_state,
    as_tensor,
    called,
    parts,
    sizes_among,
)
from outvote.worker.engine import stepped

Program = Callable[..., Sequence[Any]]
_KEPT = 64  # programs


class GraphCompiler(Protocol):
    """What makes a program of a graph; it is given tensors like those that the program will get."""

    libraries: tuple[str, ...]
    precision: Mapping[str, Any]  # what it computes in and on by its own choice

    def load(self, module: Any, examples: Sequence[Any]) -> Program: ...

    def is_gap(self, error: Exception) -> bool: ...


class CallEngine:
    """A runtime with the programs that it has made last; without one, PyTorch call by call."""

    def __init__(
        self,
        runtime: GraphCompiler | None,
        blobs: BlobStore,
        enter: Callable[[str], None],
    ) -> None:
        self._runtime = runtime
        self._enter = enter
        self._weights = Weights(blobs)
        self._programs: OrderedDict[str, Program] = OrderedDict()

    def forget(self) -> None:
        self._programs.clear()
        self._weights.keep_only(())

    def whole(self, model: Model, feeds: Sequence[State], shown: Sequence[Ref] = ()) -> list[State]:
        """The model's outputs, then the tensors to be shown."""
        torch.manual_seed(0)
        self._weights.keep_only(model.layers)
        wanted = (*model.outputs, *shown)
        with torch.no_grad():
            found: Sequence[Any]
            if self._runtime is None:
                found = self._interpreted(model, feeds, wanted)
            else:
                found = self._by_program(model, wanted, feeds)
        return [as_state(v, model.batch_axis(r)) for v, r in zip(found, wanted, strict=True)]

    def alone(self, layer: Layer, given: Sequence[State]) -> list[State]:
        """One layer on tensors of its own."""
        self._enter(layer.name)
        with torch.no_grad():
            found: Sequence[Any]
            if self._runtime is None or _computes_sizes(layer):
                found = self._called(layer, dict(zip(layer.refs(), given, strict=True)))
            else:
                found = self._of_one(layer, given)
        return [as_state(value, layer.batch_axis(place)) for place, value in enumerate(found)]

    def stepped(
        self, model: Model, feeds: Sequence[State], jitter: int, after: Callable[[], None]
    ) -> list[State]:
        """The model's outputs, call by call, every tensor moved by one unit in the last place."""
        torch.manual_seed(0)
        return stepped(self.alone, model, feeds, jitter, after)

    def regions(self, model: Model, examples: Sequence[Any]) -> list[tuple[str, ...]]:
        """Which layers of a model, on tensors like these, are computed at once."""
        told = getattr(self._runtime, "regions", None)
        if told is None:
            raise NotImplementedError("this target does not tell what it fuses")
        module = graph_module(model, list(dict.fromkeys(model.outputs)), self._weights)
        found: list[tuple[str, ...]] = told(module, examples)
        return found

    def _interpreted(
        self, model: Model, feeds: Sequence[State], wanted: Sequence[Ref]
    ) -> list[Any]:
        """Call by call, so that a death is attributed to one; what nobody needs any more goes."""
        held: dict[str, list[Any]] = {
            item.name: [as_tensor(feed)] for item, feed in zip(model.inputs, feeds, strict=True)
        }
        uses = model.last_use()
        kept = {r.producer for r in wanted}
        for position, layer in enumerate(model.layers):
            self._enter(layer.name)
            named = arguments(layer, lambda r: held[r.producer][r.index], self._weights.of(layer))
            held[layer.name] = parts(layer, called(layer, named))
            for name in layer.inputs:
                if uses[name] == position and name not in kept:
                    del held[name]
        return [held[r.producer][r.index] for r in wanted]

    def _called(self, layer: Layer, given: Mapping[Ref, State]) -> list[Any]:
        sizes = sizes_among(layer)
        values = {r: as_number(s) if r in sizes else as_tensor(s) for r, s in given.items()}
        named = arguments(layer, values.__getitem__, self._weights.of(layer))
        return parts(layer, called(layer, named))

    def _of_one(self, layer: Layer, given: Sequence[State]) -> Sequence[Any]:
        numbers = sizes_among(layer)
        fixed = {r: as_number(s) for r, s in zip(layer.refs(), given, strict=True) if r in numbers}
        plain = with_numbers(layer, fixed) if fixed else layer
        left = [s for r, s in zip(layer.refs(), given, strict=True) if r not in fixed]
        model, _ = one_layer("torch_export", plain, left)
        return self._by_program(model, tensors_of(layer), left)

    def _by_program(
        self, model: Model, wanted: Sequence[Ref], feeds: Sequence[State]
    ) -> Sequence[Any]:
        assert self._runtime is not None
        # Each tensor once: a converter may not take one that is an output twice.
        once = list(dict.fromkeys(wanted))
        tensors = [as_tensor(feed) for feed in feeds]
        forms = [[list(t.shape), str(t.dtype)] for t in tensors]
        key = digest_of(model.to_json(), [[r.producer, r.index] for r in once], forms)
        if key not in self._programs:
            module = graph_module(model, once, self._weights)
            self._programs[key] = self._runtime.load(module, [t.clone() for t in tensors])
            while len(self._programs) > _KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        found = dict(zip(once, self._programs[key](*tensors), strict=True))
        return [found[r] for r in wanted]


def _computes_sizes(layer: Layer) -> bool:
    """Whether a layer gives numbers, which no kernel computes."""
    return not layer.kind.startswith("aten.") or layer.kind.startswith("aten.sym_")


def with_numbers(layer: Layer, known: Mapping[Ref, Any]) -> Layer:
    """The layer with computed sizes as plain numbers."""

    def plain(told: Any) -> Any:
        if isinstance(told, Mapping):
            read = next(find_refs(told), None) if SIZE in told else None
            return known.get(read, told) if read is not None else told
        return [plain(item) for item in told] if isinstance(told, list | tuple) else told

    return replace(layer, kwargs={name: plain(told) for name, told in layer.kwargs.items()})
