"""Single layers of a model, each compiled in the mode of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import Layer, Model
from outvote.core.states import State
from outvote.dialects.keras.workers.keras3.backends import to_tensor, typed
from outvote.dialects.keras.workers.keras3.graph import Graph, Workshop, get_mask, set_mask


class LayerPrograms:
    """The layers of a model as functions, of which the last is kept."""

    def __init__(
        self,
        model: Model,
        workshop: Workshop,
        compiler: Callable[..., Any],
        enter: Callable[[str], None],
    ) -> None:
        self._graph = Graph(model, workshop, enter)
        self._compiler = compiler
        self._ready: tuple[Any, Any] = (None, None)  # the program of the layer in progress

    def compute(self, layer: Layer, given: Sequence[State]) -> tuple[State, ...]:
        """What a layer gives on these tensors."""
        feeds = list(zip(layer.refs(), given, strict=True))
        outputs: tuple[State, ...] = self._program_for(layer, feeds)([s for _, s in feeds])
        return outputs

    def _program_for(self, layer: Layer, feeds: Sequence[tuple[Any, State]]) -> Any:
        """The layer as a function of states, compiled in this target's mode."""
        refs = [ref for ref, _ in feeds]
        masked = [state.mask is not None for _, state in feeds]
        key = (layer.name, masked, [state.dtype for _, state in feeds])
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

        def run(states: Sequence[State]) -> tuple[State, ...]:
            flat = _flat(states)
            if flat and flat[0].ndim:
                self._graph.prepare(len(flat[0]))
            arrays, dtypes = program(flat)
            outputs, masks = arrays[: len(returned)], iter(arrays[len(returned) :])
            return tuple(
                State(array, next(masks) if has_mask else None, dtype)
                for array, has_mask, dtype in zip(outputs, returned, dtypes, strict=False)
            )

        self._ready = (key, run)
        return run


def _flat(states: Sequence[State]) -> list[Array]:
    """Tensors in their own types, each before its mask."""
    pairs = [(typed(state.array, state.dtype), state.mask) for state in states]
    return [part for pair in pairs for part in pair if part is not None]


def _tensors(states: Sequence[State]) -> list[Any]:
    return [to_tensor(part) for part in _flat(states)]
