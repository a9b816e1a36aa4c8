"""Steps of training that part: are the gradients behind it, and they nothing but rounding?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from conftest import fake
from outvote.bench.bench import Bench
from outvote.bench.exercise import Exercised
from outvote.core.arrays import Array
from outvote.core.blobs import BlobStore
from outvote.core.exercises import Pull, Update
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.core.target import Outcome, Run
from outvote.core.train_protocol import (
    ApplyGradients,
    GradientsApplied,
    Leaf,
    PullBack,
    PulledBack,
    StepsTrained,
)
from outvote.judge.compare import Settings
from outvote.run.pool import Pool
from outvote.triage.first_step import parts_with_gradients

NAMES = ("one", "other")
LAYER = Layer("dense", "Dense", {"name": "dense"}, args=[{REF: ["x", 0]}])
MODEL = Model("m", (Input("x", (None, 2), "float32"),), (LAYER,), (Ref("dense"),), "keras")
RATE = np.float32(0.1)


@dataclass
class Desk:
    """Gradients that rounding moves by so much; an optimiser that makes a step of each sign."""

    blobs: BlobStore
    gradients: Mapping[str, Array]
    moved: float
    dead: bool

    def ask_all(self, names: Iterable[str], request: Any, *more: Any) -> dict[str, Run]:
        return {name: Run(name, Outcome.OK, self.answer(name, request)) for name in names}

    def answer(self, name: str, request: PullBack | ApplyGradients) -> Any:
        if isinstance(request, ApplyGradients):
            (row,) = request.gradients
            get = self.blobs.get
            pairs = zip(map(get, request.weights), map(get, row), strict=True)
            after = [np.array(w) - RATE * np.sign(np.array(g)) for w, g in pairs]
            return GradientsApplied(weights=(tuple(after),), memory=())
        way = 0 if request.jitter is None else (-1) ** request.jitter
        array = (self.gradients[name] + way * self.moved).astype(np.float32)
        told = Outputs((np.ones((1, 2), np.float32),), ("float32",))
        learned = leaf("kernel", 0, None if self.dead and name == NAMES[1] else array)
        kept = leaf("variance", 1, np.ones(1, np.float32))
        value = np.array(1, np.float32)
        return PulledBack(value=value, outputs=told, gradients=(learned,), statistics=(kept,))


def leaf(name: str, place: int, array: Array | None) -> Leaf:
    return Leaf("dense", place, name, array, "float32")


def stepped(weights: Array, *signs: float) -> Array:
    return (weights - RATE * np.array(signs)).astype(np.float32)


@dataclass
class Training:
    """Two targets of which one goes its way; by default what rounding explains."""

    weights: tuple[float, ...] = (1.0, -2.0, 0.5)
    moved: float = 1e-6  # by rounding, of each gradient: the last is nothing but that
    other: tuple[float, ...] = (1, -1, -1)  # the signs of its step; those of the first: 1, -1, 1
    losses: tuple[float, float] = (1.0, 1.0)
    variances: tuple[float, float] = (1.0, 1.0)
    dead: bool = False  # the other target has no gradient of what is learned

    def is_explained(self, folder: Path) -> bool:
        weights = np.array(self.weights, np.float32)
        gradient = np.array([1.0, -1.0, 5e-7])
        desk = Desk(BlobStore(folder), dict.fromkeys(NAMES, gradient), self.moved, self.dead)
        bench = Bench(cast(Pool, desk), {name: fake(name) for name in NAMES}, Settings())
        pull = Pull(MODEL, (np.ones((1, 2), np.float32),), truth=np.ones((1, 2), np.float32))
        first = {name: desk.answer(name, pull.request(desk.blobs)) for name in NAMES}
        after = {"one": stepped(weights, 1, -1, 1), "other": stepped(weights, *self.other)}
        ends = {
            name: (leaf("kernel", 0, after[name]), leaf("variance", 1, np.array([v], np.float32)))
            for name, v in zip(NAMES, self.variances, strict=True)
        }
        trained = {
            name: StepsTrained(losses=(loss,), weights=(ends[name],))
            for name, loss in zip(NAMES, self.losses, strict=True)
        }

        def update_of(gradients: Sequence[Leaf]) -> tuple[list[Leaf], Update]:
            found = [one for one in gradients if one.array is not None]
            arrays = tuple(one.array for one in found if one.array is not None)
            return found, Update({"class_name": "signs"}, (weights,) * len(found), (arrays, arrays))

        steps = Exercised(pull, trained, {})
        return parts_with_gradients(bench, steps, Exercised(pull, first, {}), update_of)


@pytest.mark.parametrize("weights", [(1.0, -2.0, 0.5), (0.5, -2.0, 0.5), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize(
    ("training", "explained"),
    [
        (Training(), True),  # the last gradient is nothing but rounding: either sign
        (Training(other=(1, -1, 1)), False),  # targets do not part
        (Training(moved=0.0), False),  # its own gradient leads elsewhere, and rounding moves none
        (Training(other=(-1, -1, -1)), False),  # the first is no rounding
        (Training(other=(-1, 1, 1)), False),  # nor is the second
        (Training(other=(1, -1, 4)), False),  # more than a step
        (Training(losses=(1.0, 7.0)), False),
        (Training(variances=(1.0, 100.0)), False),
        (Training(dead=True), False),
    ],
)
def test_a_first_step_is_held_against_what_gradients_as_rounding_moves_them_lead_to(
    training: Training, explained: bool, weights: tuple[float, ...], tmp_path: Path
) -> None:
    assert replace(training, weights=weights).is_explained(tmp_path) is explained
