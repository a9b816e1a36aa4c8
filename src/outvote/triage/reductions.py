"""Ways to make a specimen smaller or plainer. Each yields candidates, the boldest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.cuts import owned
from outvote.core.dialect import dialect
from outvote.core.instances import announced
from outvote.core.model import Input, Layer, Model, Ref, with_refs
from outvote.core.specimen import Specimen
from outvote.core.states import State
from outvote.localize.whole_graph import prefix
from outvote.triage.plain import PATTERNS

_ROWS = 8


class Builder(Protocol):
    """What reductions need of a worker."""

    @property
    def blobs(self) -> BlobStore: ...

    def rebuilt(self, specimen: Specimen) -> Specimen | None: ...

    def defaults(self, specimen: Specimen) -> Mapping[str, Mapping[str, Any]]: ...

    def tensors(self, specimen: Specimen, names: Sequence[str]) -> dict[str, list[State]]: ...


Reduction = Callable[[Specimen, Builder], Iterable[Specimen]]


def fewer_inputs(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """One instance of the batch, or half of them."""
    count = specimen.count
    if count < 2:
        return
    for row in range(min(count, _ROWS)):
        yield specimen.instances(slice(row, row + 1))
    half = count // 2
    yield specimen.instances(slice(None, half))
    yield specimen.instances(slice(half, None))


def fewer_outputs(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """One output of the model, and what it needs."""
    outputs = specimen.model.outputs
    for ref in outputs if len(outputs) > 1 else ():
        names = [layer.name for layer in specimen.model.layers]
        if ref.producer in names:
            cut = prefix(specimen.model, names.index(ref.producer))
            yield used_inputs(Specimen(replace(cut, outputs=(ref,)), specimen.inputs))


def fewer_layers(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """The model cut off earlier, begun later, or with one layer taken out."""
    layers = specimen.model.layers
    if len(layers) < 2:
        return
    size = len(layers)
    for position in _halves(size):
        begun = _begun_at(specimen, position, builder)
        if begun is not None:
            yield begun
    for position in (*_halves(size - 1), 0):
        cut = prefix(specimen.model, size - 2 - position)
        yield used_inputs(Specimen(cut, specimen.inputs))
    for layer in reversed(layers):
        bypassed = _without(specimen.model, layer)
        if bypassed is not None:
            rebuilt = builder.rebuilt(used_inputs(Specimen(bypassed, specimen.inputs)))
            if rebuilt is not None:
                yield rebuilt


def _halves(size: int) -> list[int]:
    """Positions from the far end inwards, in steps that halve: size-1, size/2, size/4 … 1."""
    found = []
    step = size - 1
    while step >= 1:
        found.append(step)
        step //= 2
    return found


def used_inputs(specimen: Specimen) -> Specimen:
    """Without model inputs that no layer reads any more."""
    read = {name for layer in specimen.model.layers for name in layer.inputs}
    kept = [i for i, item in enumerate(specimen.model.inputs) if item.name in read]
    inputs = tuple(specimen.model.inputs[i] for i in kept)
    return Specimen(replace(specimen.model, inputs=inputs), tuple(specimen.inputs[i] for i in kept))


def _begun_at(specimen: Specimen, position: int, builder: Builder) -> Specimen | None:
    """The layers from a position on; what they read from earlier ones becomes an input."""
    rest = specimen.model.layers[position:]
    inside = {layer.name for layer in rest}
    if any(ref.producer not in inside for ref in specimen.model.outputs):
        return None
    outside = list(
        dict.fromkeys(r for layer in rest for r in layer.refs() if r.producer not in inside)
    )
    given = {
        item.name: State.fed(array, item)
        for item, array in zip(specimen.model.inputs, specimen.inputs, strict=True)
    }
    hidden = [ref.producer for ref in outside if ref.producer not in given]
    states = builder.tensors(specimen, list(dict.fromkeys(hidden)))
    if any(name not in states for name in hidden):
        return None
    names: dict[Ref, Ref] = {}
    inputs: list[Input] = []
    arrays: list[Array] = []
    for number, ref in enumerate(outside):
        fed = ref.producer in given
        state = given[ref.producer] if fed else states[ref.producer][ref.index]
        if state.mask is not None:
            return None  # a mask cannot be fed to several layers at once
        names[ref] = Ref(f"x{number}")
        axis = specimen.model.batch_axis(ref)
        inputs.append(Input(f"x{number}", announced(state.array, axis), state.dtype, axis))
        arrays.append(state.array)
    layers = owned(
        replace(
            layer,
            args=with_refs(layer.args, lambda ref: names.get(ref, ref)),
            kwargs=with_refs(layer.kwargs, lambda ref: names.get(ref, ref)),
        )
        for layer in rest
    )
    return Specimen(replace(specimen.model, inputs=tuple(inputs), layers=layers), tuple(arrays))


def _without(model: Model, layer: Layer) -> Model | None:
    """The model with what one layer reads in the place of what it gives."""
    refs = list(layer.refs())
    if len(refs) != 1 or layer.name in {other.shares for other in model.layers}:
        return None

    def moved(ref: Ref) -> Ref:
        return refs[0] if ref == Ref(layer.name) else ref

    outputs = tuple(map(moved, model.outputs))
    layers = tuple(
        replace(
            item,
            args=with_refs(item.args, moved),
            kwargs=with_refs(item.kwargs, moved),
        )
        for item in model.layers
        if item is not layer
    )
    layers = tuple(map(dialect(model.dialect).layers.stale, layers))
    made = {item.name for item in layers}
    if not layers or any(ref.producer not in made for ref in outputs):
        return None
    return replace(model, layers=layers, outputs=outputs)


def smaller_shapes(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Fewer rows, columns and channels of what goes in."""
    ranks = max((array.ndim for array in specimen.inputs), default=0)
    for axis in (n for n in range(ranks) if n not in specimen.axes):
        sizes = {array.shape[axis] for array in specimen.inputs if array.ndim > axis}
        for size in sorted({n for m in sizes for n in (1, 2, 3, 4, 5, m // 2, m - 1)}):
            together = [_cut(array, axis, size) for array in specimen.inputs]
            yield from _reshaped(specimen, together, builder)
            if len(specimen.inputs) > 1 and not _has_masks(specimen):
                for place, array in enumerate(specimen.inputs):
                    alone = list(specimen.inputs)
                    alone[place] = _cut(array, axis, size)
                    yield from _reshaped(specimen, alone, builder)


def _has_masks(specimen: Specimen) -> bool:
    """Truth values belong to places of other tensors: they are cut together or not at all."""
    return any(array.dtype.kind == "b" for array in specimen.inputs)


def _cut(array: Array, axis: int, size: int) -> Array:
    if array.ndim <= axis or not 0 < size < array.shape[axis]:
        return array
    start = min(_first_unusual(array, axis), array.shape[axis] - size)
    return np.ascontiguousarray(np.take(array, range(start, start + size), axis=axis))


def _first_unusual(array: Array, axis: int) -> int:
    """Where infinity or NaN comes first along an axis; 0 where there is none."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return 0
    others = tuple(n for n in range(array.ndim) if n != axis)
    return int(np.argmax(~np.isfinite(array).all(axis=others)))


def _reshaped(specimen: Specimen, arrays: Sequence[Array], builder: Builder) -> Iterator[Specimen]:
    if all(a.shape == b.shape for a, b in zip(arrays, specimen.inputs, strict=True)):
        return
    rebuilt = builder.rebuilt(_stale(specimen.with_inputs(arrays)))
    if rebuilt is not None:
        yield rebuilt


def _stale(specimen: Specimen) -> Specimen:
    layers = tuple(map(dialect(specimen.model.dialect).layers.stale, specimen.model.layers))
    return replace(specimen, model=replace(specimen.model, layers=layers))


def plain_numbers(specimen: Specimen, builder: Builder) -> Iterator[Specimen]:
    """Inputs and weights that one can type: patterns, whole numbers, few decimals."""
    for place, array in enumerate(specimen.inputs):
        for plain in _plainer(array):
            arrays = [*specimen.inputs[:place], plain, *specimen.inputs[place + 1 :]]
            yield specimen.with_inputs(arrays)
    for layer in specimen.model.layers:
        for place, weight in enumerate(layer.weights):
            array = np.asarray(builder.blobs.get(weight.digest))
            for plain in _plainer(array):
                new = replace(weight, digest=builder.blobs.put(plain))
                weights = (*layer.weights[:place], new, *layer.weights[place + 1 :])
                yield specimen.with_layer(replace(layer, weights=weights))


def _plainer(array: Array) -> Iterator[Array]:
    """Plainer forms of an array, plainest first; none that is as plain as it is already."""
    if array.dtype.kind != "f" or not array.size:
        return
    for _, pattern in PATTERNS:
        plain = pattern(array.shape).astype(array.dtype)
        if np.array_equal(plain, array, equal_nan=True):
            return
        yield plain
    finite = np.isfinite(array)
    for number in (0.0, 1.0) if not finite.all() else ():
        plain = np.where(finite, number, array).astype(array.dtype)
        if np.array_equal(plain, array, equal_nan=True):
            return
        yield plain
    for digits in (0, 1, 2):
        with np.errstate(invalid="ignore", over="ignore"):
            rounded = np.round(array, digits)
        if np.array_equal(rounded, array, equal_nan=True):
            return
        yield rounded


# For a dialect that has none of its own; one that has puts them between these.
REDUCTIONS: Sequence[Reduction] = (
    fewer_outputs,
    fewer_layers,
    fewer_inputs,
    smaller_shapes,
    plain_numbers,
)


def reductions_for(model: Model) -> Sequence[Reduction]:
    """The ways that the model's dialect knows, boldest first."""
    return dialect(model.dialect).reductions or REDUCTIONS
