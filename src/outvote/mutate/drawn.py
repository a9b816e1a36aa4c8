"""Models that tests draw: what is wished for of a layer, and the model that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outvote.core.model import Model


@dataclass(frozen=True)
class LayerWish:
    """A layer of a kind, on one of the shapes that it takes; of its parameters, these are drawn."""

    kind: str
    shape: int = 0  # the shape is that number of a list, round and round
    seed: int = 0  # of parameters and weights
    drawn: frozenset[str] = frozenset()  # all others stay at their defaults


@dataclass(frozen=True, repr=False)
class DrawnModel:
    """A model whose weights lie with the workers that made it. It prints as one would write it."""

    model: Model
    output_shapes: tuple[tuple[int | None, ...], ...]
    parameters: Mapping[str, Mapping[str, Any]]  # of each layer, as they were given

    def __repr__(self) -> str:
        shapes = ", ".join(f"{item.dtype}{list(item.shape[1:])}" for item in self.model.inputs)
        layers = [f"{layer.kind}({self._told(layer.name)})" for layer in self.model.layers]
        return " → ".join([shapes, *layers])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same for Hypothesis, which would take a dataclass to pieces."""
        printer.text(repr(self))

    def _told(self, name: str) -> str:
        given = self.parameters.get(name, {})
        return ", ".join(f"{key}={value!r}" for key, value in sorted(given.items()))
