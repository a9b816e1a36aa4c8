"""Computes a model one layer at a time, so that the driver can watch and swap what goes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import Layer, Model
from outvote.core.states import State, pack, unpack
from outvote.dialects.keras.workers.keras3.backends import to_tensor
from outvote.dialects.keras.workers.keras3.graph import Graph, Workshop, get_mask, set_mask
from outvote.worker.main import Reply


class Session:
    """This target's own tensors so far; each is dropped after its last use."""

    def __init__(
        self,
        model: Model,
        inputs: Sequence[Array],
        workshop: Workshop,
        compiler: Callable[..., Any],
        enter: Callable[[str], None],
    ) -> None:
        self._graph = Graph(model, workshop, enter)
        self._compiler = compiler
        self._layers = {layer.name: (i, layer) for i, layer in enumerate(model.layers)}
        self._last_use = model.last_use()
        self._ready: tuple[Any, Any] = (None, None)  # the program of the layer in progress
        self._states: dict[str, list[State]] = {
            item.name: [(array, None)] for item, array in zip(model.inputs, inputs, strict=True)
        }

    def step(self, name: str, arrays: list[Array], given: list[Any] | None) -> Reply:
        """The layer on own tensors (kept), then on the given ones; both come back.

        Own tensors may be missing or unfit, because an earlier layer went wrong; then only the
        given ones count. Without given ones, an error is the answer.
        """
        position, layer = self._layers[name]
        try:
            feeds = [(ref, self._states[ref.producer][ref.index]) for ref in layer.refs()]
            own, dtypes = self._program_for(layer, feeds)([state for _, state in feeds])
            self._states[name] = own
        except Exception:
            if given is None:
                raise
            own, dtypes = [], []
        for producer in layer.inputs:
            if self._last_use[producer] == position:
                self._states.pop(producer, None)
        header, sent = pack(own)
        reply = {"own": header, "dtypes": dtypes}
        if given is None:
            return reply, sent
        alone, also = self.call(name, arrays, given)
        return {**reply, **alone, "own_dtypes": dtypes}, [*sent, *also]

    def call(self, name: str, arrays: list[Array], given: list[Any]) -> Reply:
        """The layer on the given tensors alone."""
        _, layer = self._layers[name]
        feeds = list(zip(layer.refs(), unpack(given, arrays), strict=True))
        outputs, dtypes = self._program_for(layer, feeds)([state for _, state in feeds])
        header, sent = pack(outputs)
        return {"isolated": header, "dtypes": dtypes}, sent

    def _program_for(self, layer: Layer, feeds: Sequence[tuple[Any, State]]) -> Any:
        """The layer as a function of states, compiled in this target's mode."""
        refs = [ref for ref, _ in feeds]
        masked = [mask is not None for _, (_, mask) in feeds]
        key = (layer.name, masked)
        if self._ready[0] == key:
            return self._ready[1]
        returned: list[bool] = []

        def forward(tensors: Sequence[Any]) -> list[Any]:
            queue = list(tensors)
            states: dict[str, dict[int, Any]] = {}
            for ref, has_mask in zip(refs, masked, strict=True):
                tensor = queue.pop(0)
                if has_mask:
                    set_mask(tensor, queue.pop(0))
                states.setdefault(ref.producer, {})[ref.index] = tensor
            outputs = self._graph.call(layer, states)  # type: ignore[arg-type]
            masks = [get_mask(output) for output in outputs]
            returned[:] = [mask is not None for mask in masks]
            return [*outputs, *(mask for mask in masks if mask is not None)]

        self._graph.make_one(layer, lambda: forward(_tensors([state for _, state in feeds])))
        program = self._compiler(forward, self._graph.variables)

        def run(states: Sequence[State]) -> tuple[list[State], list[str]]:
            flat = [part for state in states for part in state if part is not None]
            if flat and flat[0].ndim:
                self._graph.prepare(len(flat[0]))
            arrays, dtypes = program(flat)
            outputs, masks = arrays[: len(returned)], iter(arrays[len(returned) :])
            paired = [
                (array, next(masks) if has_mask else None)
                for array, has_mask in zip(outputs, returned, strict=True)
            ]
            return paired, dtypes[: len(returned)]

        self._ready = (key, run)
        return run


def _tensors(states: Sequence[State]) -> list[Any]:
    return [to_tensor(part) for state in states for part in state if part is not None]
