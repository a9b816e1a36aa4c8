"""Steps of training that part: are the gradients behind it, and they nothing but rounding?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
WEIGHTS = np.array([1.0, -2.0, 0.5], np.float32)
RATE = np.float32(0.1)


@dataclass
class Desk:
    """Gradients that rounding moves by so much; an optimiser that makes a step of each sign."""

    blobs: BlobStore
    gradients: Mapping[str, Array]
    moved: float = 0.0

    def ask_all(self, names: Iterable[str], request: Any, *more: Any) -> dict[str, Run]:
        return {name: Run(name, Outcome.OK, self.answer(name, request)) for name in names}

    def answer(self, name: str, request: PullBack | ApplyGradients) -> Any:
        if isinstance(request, ApplyGradients):
            (row,) = request.gradients
            after = np.array(self.blobs.get(request.weights[0])) - RATE * np.sign(
                np.array(self.blobs.get(row[0]))
            )
            return GradientsApplied(weights=((after.astype(np.float32),),), memory=())
        way = 0 if request.jitter is None else (-1) ** request.jitter
        array = (self.gradients[name] + way * self.moved).astype(np.float32)
        return pulled(array)


def pulled(array: Array) -> PulledBack:
    leaf = Leaf("dense", 0, "kernel", array, "float32")
    one = np.float32(1)
    told = Outputs((np.ones((1, 2), np.float32),), ("float32",))
    return PulledBack(value=np.array(one), outputs=told, gradients=(leaf,))


def update_of(gradients: Sequence[Leaf]) -> tuple[list[Leaf], Update]:
    (leaf,) = gradients
    assert leaf.array is not None
    return [leaf], Update({"class_name": "signs"}, (WEIGHTS,), ((leaf.array,), (leaf.array,)))


def stepped(*signs: float) -> Array:
    return (WEIGHTS - RATE * np.array(signs)).astype(np.float32)


@pytest.mark.parametrize(
    ("moved", "other", "explained"),
    [
        (1e-6, (1, -1, -1), True),  # the last gradient is nothing but rounding: either sign
        (0.0, (1, -1, 1), False),  # targets do not part
        (0.0, (1, -1, -1), False),  # its own gradient leads elsewhere, and rounding moves none
        (1e-6, (-1, -1, -1), False),  # the first is no rounding
        (1e-6, (1, -1, 4), False),  # more than a step
    ],
)
def test_a_first_step_is_held_against_what_gradients_as_rounding_moves_them_lead_to(
    moved: float, other: tuple[float, ...], explained: bool, tmp_path: Path
) -> None:
    gradient = np.array([1.0, -1.0, 5e-7])
    desk = Desk(BlobStore(tmp_path), dict.fromkeys(NAMES, gradient), moved)
    targets = {name: fake(name) for name in NAMES}
    bench = Bench(cast(Pool, desk), targets, Settings())
    pull = Pull(MODEL, (np.ones((1, 2), np.float32),), truth=np.ones((1, 2), np.float32))
    whole = Exercised(pull, {name: pulled(gradient.astype(np.float32)) for name in NAMES}, {})
    after = {"one": stepped(1, -1, 1), "other": stepped(*other)}
    trained = {
        name: StepsTrained(losses=(1.0,), weights=((Leaf("dense", 0, "kernel", array),),))
        for name, array in after.items()
    }
    steps = Exercised(pull, trained, {})
    assert parts_with_gradients(bench, steps, whole, update_of) is explained
