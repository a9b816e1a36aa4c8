"""A model with the shapes of all its tensors, and the edits that keep it a valid graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from outvote.core.arrays import Array
from outvote.core.model import Layer, Model, Ref, with_refs


@dataclass(frozen=True)
class Spec:
    """Shape and dtype of a tensor, and the axis of its batch; None in a shape is free."""

    shape: tuple[int | None, ...]
    dtype: str
    batch: int | None = 0

    @property
    def place(self) -> tuple[int | None, ...]:
        """The shape of one instance."""
        return tuple(n for axis, n in enumerate(self.shape) if axis != self.batch)

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype

    @property
    def size(self) -> int | None:
        """Numbers per instance; None if a dimension is free."""
        total = 1
        for n in self.place:
            if n is None:
                return None
            total *= n
        return total


@dataclass(frozen=True)
class Subject:
    """What a rule mutates. Edits return a new subject; this one stays as it is."""

    model: Model
    specs: Mapping[str, tuple[Spec, ...]]
    inputs: tuple[Array, ...] = field(default=(), compare=False)  # its own; none: its seed's

    @staticmethod
    def of(model: Model, specs: Mapping[str, Sequence[Sequence[Any]]]) -> Subject:
        """From what a worker told of a model it has read; of some layers it may not know."""
        known = {
            layer.name: tuple(
                Spec(tuple(shape), dtype, layer.batch_axis(index))
                for index, (shape, dtype) in enumerate(specs.get(layer.name, ()))
            )
            for layer in model.layers
        }
        fed = {item.name: (Spec(item.shape, item.dtype, item.batch),) for item in model.inputs}
        return Subject(model, {**fed, **known})

    def fed(self, inputs: Iterable[Array]) -> Subject:
        """The same, on inputs of its own."""
        return replace(self, inputs=tuple(inputs))

    def spec(self, ref: Ref) -> Spec:
        return self.specs[ref.producer][ref.index]

    def float_tensors(self) -> list[Ref]:
        """What layers give, as far as it is numbers with a fraction, and more than one axis."""
        return [
            Ref(layer.name, index)
            for layer in self.model.layers
            for index, spec in enumerate(self.specs[layer.name])
            if spec.is_float and spec.place
        ]

    def is_known(self, layer: Layer) -> bool:
        """Whether shapes and types of what a layer reads and gives are known."""
        read = all(ref.index < len(self.specs[ref.producer]) for ref in layer.refs())
        return read and bool(self.specs[layer.name])

    def reads(self, layer: Layer) -> list[Spec]:
        return [self.spec(ref) for ref in layer.refs()]

    def keeps_shape(self, layer: Layer) -> bool:
        """Whether what comes out of a layer has the shape and dtype of everything that goes in."""
        if not self.is_known(layer):
            return False
        outputs, inputs = self.specs[layer.name], self.reads(layer)
        return len(outputs) == 1 and bool(inputs) and all(i == outputs[0] for i in inputs)

    def has_one_input(self, layer: Layer) -> bool:
        """Whether a layer is called with one tensor and nothing else.

        Where all arguments have names, those that are no tensors are its parameters.
        """
        plain = not layer.args or all(value is None for value in layer.kwargs.values())
        return plain and len(list(layer.refs())) == 1

    def readers(self, name: str) -> list[Layer]:
        return [layer for layer in self.model.layers if name in layer.inputs]

    def calls_of(self, layer: Layer) -> list[Layer]:
        """All calls of the same layer object, itself among them."""
        root = layer.shares or layer.name
        return [item for item in self.model.layers if root in (item.name, item.shares)]

    def unused(self, name: str) -> str:
        taken = set(self.specs)
        number = 1
        while f"{name}_{number}" in taken:
            number += 1
        return f"{name}_{number}"

    def with_object(self, old: Layer, **changes: Any) -> Subject:
        """The layer object changed in all its calls (weights or configuration)."""
        calls = {item.name for item in self.calls_of(old)}
        layers = [
            replace(item, **changes) if item.name in calls else item for item in self.model.layers
        ]
        return replace(self, model=replace(self.model, layers=tuple(layers)))

    def with_layers(
        self,
        layers: Iterable[Layer],
        outputs: Iterable[Ref] | None = None,
        specs: Mapping[str, tuple[Spec, ...]] | None = None,
    ) -> Subject:
        kept = tuple(layers)
        model = replace(
            self.model,
            layers=kept,
            outputs=tuple(outputs) if outputs is not None else self.model.outputs,
        )
        known = {**self.specs, **(specs or {})}
        names = [item.name for item in model.inputs] + [layer.name for layer in kept]
        return Subject(model, {name: known[name] for name in names})

    def without(self, layer: Layer) -> Subject:
        """The layer taken out; whoever read it reads its first input."""
        source = next(iter(layer.refs()))
        heirs = [item for item in self.calls_of(layer) if item.name != layer.name]
        layers = []
        for item in self.model.layers:
            if item.name == layer.name:
                continue
            if item.shares == layer.name:  # the first remaining call owns the object now
                root = heirs[0].name
                item = replace(item, shares=None if item.name == root else root)
            layers.append(_reading(item, Ref(layer.name), source))
        outputs = [source if ref.producer == layer.name else ref for ref in self.model.outputs]
        return self.with_layers(layers, outputs)

    def inserted(
        self,
        after: Ref,
        chain: Sequence[Layer],
        specs: Mapping[str, tuple[Spec, ...]],
        end: Ref | None = None,
    ) -> Subject:
        """A chain of new layers behind a tensor; whoever read the tensor reads the chain's end."""
        end = end or Ref(chain[-1].name)
        layers: list[Layer] = []
        if after.producer in {item.name for item in self.model.inputs}:
            layers += chain
        for item in self.model.layers:
            layers.append(_reading(item, after, end))
            if item.name == after.producer:
                layers += chain
        outputs = [end if ref == after else ref for ref in self.model.outputs]
        return self.with_layers(layers, outputs, specs)


def reading(layer: Layer, source: Ref) -> Layer:
    """A layer that reads one tensor, reading this one."""
    args, kwargs = (with_refs(given, lambda ref: source) for given in (layer.args, layer.kwargs))
    return replace(layer, args=args, kwargs=kwargs)


def _reading(layer: Layer, old: Ref, new: Ref) -> Layer:
    """The layer with one tensor among its arguments exchanged."""
    if old.producer not in layer.inputs:
        return layer

    def exchanged(ref: Ref) -> Ref:
        return new if ref == old else ref

    args, kwargs = with_refs(layer.args, exchanged), with_refs(layer.kwargs, exchanged)
    return replace(layer, args=args, kwargs=kwargs)
