"""Exercises: what training is made of, each to be done by several targets on the same arrays.

A `Pull` is differentiated, an `Update` is made by an optimiser, a `Drill` is a few steps of a
whole model. What targets give comes in parts, which are compared one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.model import Input, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.protocol import Request
from outvote.core.train_protocol import (
    ApplyGradients,
    GradientsApplied,
    Leaf,
    Move,
    Named,
    PullBack,
    PulledBack,
    StepsTrained,
    TrainSteps,
)

Change = Callable[[Array], Array]
Widen = Callable[[Model, tuple[Array, ...]], tuple[Model, tuple[Array, ...]]]


@dataclass(frozen=True)
class PartTold:
    """One part of what a target gave: arrays to compare, and the name of each.

    `missing`: those that the library gave nothing for; zeros stand in their places.
    """

    outputs: Outputs
    names: tuple[str, ...]
    missing: frozenset[str] = frozenset()


class Exercise(Protocol):
    """What targets are asked to do, and how their answers are read."""

    @property
    def parts(self) -> tuple[str, ...]: ...

    def request(self, blobs: BlobStore, exact: bool = False) -> Request[Any]: ...

    def told(self, part: str, reply: Any) -> PartTold: ...

    def changed(self, change: Change) -> Exercise:
        """With every array of floats changed that is no weight of a model."""
        ...

    def wide(self, widen: Widen) -> Exercise:
        """The same in float64."""
        ...


@dataclass(frozen=True)
class Pull:
    """A number to be differentiated: outputs times cotangents, a loss, a penalty, or their sum."""

    model: Model
    inputs: tuple[Array, ...]
    cotangents: tuple[Array | None, ...] = ()
    loss: Named | None = None
    truth: Array | None = None
    sample_weight: Array | None = None
    penalty: bool = False
    moves: tuple[Move, ...] = ()
    border: float | None = None  # what losses keep away from 0 by; None: as the library has it
    jitter: int | None = None  # the seed by which tensors of the graph are moved by a last place

    parts = ("forward", "value", "gradient", "statistics")

    def request(self, blobs: BlobStore, exact: bool = False) -> PullBack:
        return PullBack(
            model=self.model,
            inputs=tuple(map(blobs.put, self.inputs)),
            cotangents=tuple(None if c is None else blobs.put(c) for c in self.cotangents),
            loss=self.loss,
            truth="" if self.truth is None else blobs.put(self.truth),
            sample_weight="" if self.sample_weight is None else blobs.put(self.sample_weight),
            penalty=self.penalty,
            exact=exact,
            moves=self.moves,
            border=self.border,
            jitter=self.jitter,
            steps=len(self.model.layers) + len(self.moves),
        )

    def told(self, part: str, reply: PulledBack) -> PartTold:
        if part == "forward":
            names = tuple(f"output {n}" for n in range(len(reply.outputs.arrays)))
            return PartTold(reply.outputs, names)
        if part == "value":
            return PartTold(Outputs((reply.value,), (reply.value.dtype.name,), (None,)), ("value",))
        leaves = reply.gradients if part == "gradient" else reply.statistics
        arrays = [self._array(leaf) for leaf in leaves]
        axes = [None if leaf.layer else self.model.inputs[leaf.place].batch for leaf in leaves]
        types = [leaf.dtype or self._dtype(leaf) for leaf in leaves]
        return PartTold(
            Outputs(tuple(arrays), tuple(types), tuple(axes)),
            tuple(map(leaf_name, leaves)),
            frozenset(leaf_name(leaf) for leaf in leaves if leaf.array is None),
        )

    def changed(self, change: Change) -> Pull:
        changed = tuple(map(_floats_alone(change), self.inputs))
        cotangents = tuple(None if c is None else change(c) for c in self.cotangents)
        return replace(self, inputs=changed, cotangents=cotangents)

    def wide(self, widen: Widen) -> Pull:
        model, inputs = widen(self.model, self.inputs)
        return replace(
            self,
            model=model,
            inputs=inputs,
            cotangents=tuple(None if c is None else widened(c) for c in self.cotangents),
            truth=None if self.truth is None else widened(self.truth),
            sample_weight=None if self.sample_weight is None else widened(self.sample_weight),
        )

    @property
    def is_finite(self) -> bool:
        """Whether all that comes to it is: nothing has a derivative at infinity."""
        given = (*self.inputs, *(c for c in self.cotangents if c is not None))
        return all(np.isfinite(array).all() for array in given if array.dtype.kind == "f")

    def shape(self, leaf: Leaf) -> tuple[int, ...]:
        """What a gradient must have the shape of."""
        if not leaf.layer:
            return self.inputs[leaf.place].shape
        return self.model.layer(leaf.layer).weights[leaf.place].shape

    def _array(self, leaf: Leaf) -> Array:
        return np.zeros(self.shape(leaf), np.float32) if leaf.array is None else leaf.array

    def _dtype(self, leaf: Leaf) -> str:
        return "float32" if leaf.layer else self.model.inputs[leaf.place].dtype


@dataclass(frozen=True)
class Update:
    """Weights and the gradients that an optimiser is fed with, one row for each step."""

    optimizer: Named
    weights: tuple[Array, ...]
    gradients: tuple[tuple[Array, ...], ...]
    rows: tuple[Array | None, ...] = ()
    constraints: tuple[Named | None, ...] = ()

    parts = ("weights",)

    def whole(self) -> Update:
        """With gradients of all rows, where some are of a few: those of one row are added up."""
        rows = self.rows or (None,) * len(self.weights)
        steps = tuple(tuple(map(_all_rows, step, rows, self.weights)) for step in self.gradients)
        return replace(self, gradients=steps, rows=())

    def request(self, blobs: BlobStore, exact: bool = False) -> ApplyGradients:
        return ApplyGradients(
            optimizer=self.optimizer,
            weights=tuple(map(blobs.put, self.weights)),
            gradients=tuple(tuple(map(blobs.put, row)) for row in self.gradients),
            rows=self.rows,
            constraints=self.constraints,
            steps=len(self.gradients),
        )

    def told(self, part: str, reply: GradientsApplied) -> PartTold:
        steps = [
            (f"weight {place} after step {step + 1}", array)
            for step, arrays in enumerate(reply.weights)
            for place, array in enumerate(arrays)
        ]
        kept = [
            (memory_name(leaf), leaf.array)
            for leaf in reply.memory
            if leaf.array is not None and leaf.array.dtype.kind == "f"
        ]
        return _plainly([*steps, *kept])

    def changed(self, change: Change) -> Update:
        rows = tuple(tuple(map(change, row)) for row in self.gradients)
        return replace(self, gradients=rows, weights=tuple(map(change, self.weights)))

    def wide(self, widen: Widen) -> Update:
        return self.changed(widened)


@dataclass(frozen=True)
class Drill:
    """A few steps of a model on one batch, as a library trains by itself."""

    model: Model
    inputs: tuple[Array, ...]
    truth: Array
    loss: Named
    optimizer: Named
    rounds: int

    parts = ("steps",)

    def request(self, blobs: BlobStore, exact: bool = False) -> TrainSteps:
        return TrainSteps(
            model=self.model,
            inputs=tuple(map(blobs.put, self.inputs)),
            truth=blobs.put(self.truth),
            loss=self.loss,
            optimizer=self.optimizer,
            rounds=self.rounds,
            exact=exact,
            steps=self.rounds,
        )

    def told(self, part: str, reply: StepsTrained) -> PartTold:
        losses = np.array(reply.losses, np.float32)
        after = [
            (f"{leaf_name(leaf)} after step {step + 1}", leaf.array)
            for step, leaves in enumerate(reply.weights)
            for leaf in leaves
            if leaf.array is not None and leaf.array.dtype.kind == "f"
        ]
        return _plainly([("losses", losses), *after])

    def changed(self, change: Change) -> Drill:
        return replace(self, inputs=tuple(map(_floats_alone(change), self.inputs)))

    def wide(self, widen: Widen) -> Drill:
        model, inputs = widen(self.model, self.inputs)
        return replace(self, model=model, inputs=inputs, truth=widened(self.truth))


def loss_pull(
    spoken: str,
    prediction: Array,
    dtype: str,
    loss: Named,
    truth: Array,
    sample_weight: Array | None = None,
) -> Pull:
    """A loss alone, of given predictions."""
    item = Input("prediction", (None, *prediction.shape[1:]), dtype)
    model = Model("loss", (item,), (), (Ref("prediction"),), spoken)
    return Pull(model, (prediction,), loss=loss, truth=truth, sample_weight=sample_weight)


@dataclass(frozen=True)
class StageCase:
    """An exercise of one stage alone, drawn for it; `parts` are those that say something."""

    stage: str
    subject: str  # the loss, the optimiser, the regulariser or the constraint
    exercise: Exercise
    parts: tuple[str, ...]


def memory_name(leaf: Leaf) -> str:
    """A variable of an optimiser, by its place: its name may stand there more than once."""
    return f"variable {leaf.place} ({leaf.name})"


def leaf_name(leaf: Leaf) -> str:
    return f"{leaf.layer}/{leaf.name}" if leaf.layer else leaf.name


def _all_rows(values: Array, rows: Array | None, weight: Array) -> Array:
    if rows is None:
        return values
    found = np.zeros(weight.shape, values.dtype)
    np.add.at(found, rows, values)
    return found


def widened(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _floats_alone(change: Change) -> Change:
    return lambda array: change(array) if array.dtype.kind == "f" else array


def _plainly(named: Iterable[tuple[str, Array]]) -> PartTold:
    """Arrays without instances."""
    pairs: Sequence[tuple[str, Array]] = list(named)
    arrays = tuple(array for _, array in pairs)
    types = tuple(array.dtype.name for array in arrays)
    return PartTold(Outputs(arrays, types, (None,) * len(arrays)), tuple(name for name, _ in pairs))
