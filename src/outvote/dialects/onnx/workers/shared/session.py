"""Computes a model one node at a time, so that the driver can watch and swap what goes in."""

from __future__ import annotations

from collections.abc import Sequence

from outvote.core.model import Model
from outvote.core.states import State
from outvote.dialects.onnx.workers.shared.engine import Engine

States = tuple[State, ...]


class NodeSession:
    """This target's own tensors: of one run of the whole graph in which all are outputs.

    A runtime that cannot do that computes them node by node, each from its own.
    """

    def __init__(self, engine: Engine, model: Model, feeds: Sequence[State]) -> None:
        self._engine = engine
        self._layers = {layer.name: layer for layer in model.layers}
        self._held: dict[str, Sequence[State]] = {
            item.name: [feed] for item, feed in zip(model.inputs, feeds, strict=True)
        }
        try:
            self._held |= engine.everything(model, feeds)
        except Exception:  # whatever it is shows again in the node that is at fault
            engine.forget()

    def own(self, name: str, required: bool) -> tuple[States | None, str]:
        """What a node gives on this target's own tensors, or why it gives nothing."""
        if name not in self._held:
            layer = self._layers[name]
            try:
                given = [self._held[ref.producer][ref.index] for ref in layer.refs()]
                self._held[name] = self._engine.alone(layer, given)
            except Exception as error:
                if required:
                    raise
                return None, f"{type(error).__name__}: {error}"
        return tuple(self._held[name]), ""

    def alone(self, name: str, given: Sequence[State]) -> States:
        """What a node gives on the tensors that are told."""
        return tuple(self._engine.alone(self._layers[name], given))
