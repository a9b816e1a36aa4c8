"""Targets go through layers each at its own pace, and are compared layer by layer."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import fake
from outvote.bench.reader import read_file
from outvote.bench.steps import Step, steps
from outvote.core.protocol import ListKinds, R, Request, StepLayer
from outvote.core.target import Outcome, Run
from outvote.run.local import LocalPool
from outvote.run.patience import SharedPatience
from outvote.run.pool import Ask
from outvote.run.stretch import Stretch

NAMES = [f"d{i}" for i in range(12)]
WAIT = 20.0  # seconds, for what comes at once


class NotingPool(LocalPool):
    """Remembers which layers its workers were asked for, in order."""

    def __init__(self, targets: Any) -> None:
        super().__init__(targets)
        self.asked: list[tuple[str, str]] = []

    def _ask(
        self, name: str, request: Request[R], patience: SharedPatience, first: bool = False
    ) -> Run[R]:
        if isinstance(request, StepLayer):
            self.asked.append((name, request.layer))
        return super()._ask(name, request, patience, first)


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Twelve small layers, one behind the other."""
    weights = [np.eye(4).tolist(), np.zeros(4).tolist()]
    sources = ["x", *NAMES]
    layers = [
        {"name": name, "kind": "Dense", "inputs": [source], "weights": weights}
        for name, source in zip(NAMES, sources, strict=False)
    ]
    path = tmp_path / "chain.json"
    shape = {"input": [None, 4], "output": [None, 4]}
    path.write_text(json.dumps({"class_name": "FakeModel", **shape, "layers": layers}))
    return path


def walked(pool: LocalPool, path: Path, others: Sequence[str]) -> dict[str, Step]:
    model = read_file(pool, "a", path).reply.model
    x = np.ones((1, 4), np.float32)
    found = list(steps(pool, model, [x], "a", others))
    assert [step.layer.name for step in found] == NAMES
    return {step.layer.name: step for step in found}


def test_targets_are_ahead_of_each_other_and_the_result_is_that_of_each_layer(chain: Path) -> None:
    pool = NotingPool([fake("a"), fake("b", "lie:d7")])
    with pool:
        found = walked(pool, chain, ["b"])
    pairs = list(zip(pool.asked, pool.asked[1:], strict=False))
    assert any(first == "a" == second for (first, _), (second, _) in pairs), "they went in step"
    asked_of = [layer for name, layer in pool.asked if name == "b"]
    assert asked_of == NAMES, "each layer once"
    wrong = [n for n, step in found.items() if _differ(step.isolated)]
    assert wrong == ["d7"]
    assert [n for n, step in found.items() if _differ(step.own)] == NAMES[7:]


def _differ(outputs: Mapping[str, Any]) -> bool:
    return not np.array_equal(outputs["a"].arrays[0], outputs["b"].arrays[0])


@pytest.mark.parametrize(
    ("misdeed", "outcome"), [("raise", Outcome.ERROR), ("crash", Outcome.CRASH)]
)
def test_who_fails_a_layer_is_asked_for_none_behind_it(
    chain: Path, misdeed: str, outcome: Outcome
) -> None:
    pool = NotingPool([fake("a"), fake("b", f"{misdeed}:d5"), fake("c")])
    with pool:
        found = walked(pool, chain, ["b", "c"])
    assert found["d5"].failed["b"].outcome is outcome
    assert [n for n, step in found.items() if step.failed or step.lost] == ["d5"]
    assert [n for n, step in found.items() if "b" in step.own] == NAMES[:5]
    assert [n for n, step in found.items() if "c" in step.own] == NAMES
    assert {layer for name, layer in pool.asked if name == "b"} == set(NAMES[:6])


def test_what_a_target_lacks_alone_does_not_keep_it_from_the_next_layer(chain: Path) -> None:
    pool = NotingPool([fake("a"), fake("b", "unsupported:d5")])
    with pool:
        found = walked(pool, chain, ["b"])
    assert [n for n, step in found.items() if "b" not in step.isolated] == ["d5"]
    assert not any(step.failed or step.lost for step in found.values())


def test_the_last_step_tells_that_the_reference_fails(chain: Path) -> None:
    pool = NotingPool([fake("a", "raise:d5"), fake("b")])
    with pool:
        model = read_file(pool, "b", chain).reply.model
        found = list(steps(pool, model, [np.ones((1, 4), np.float32)], "a", ["b"]))
    assert [step.layer.name for step in found] == NAMES[:6]
    assert found[-1].failed["a"].outcome is Outcome.ERROR
    assert [layer for name, layer in pool.asked if name == "b"] == NAMES[:5]


def test_nobody_waits_for_the_answers_of_another() -> None:
    """One talk ends only after the other has had both its answers."""
    answered = threading.Event()

    def talk(name: str, ask: Ask) -> bool:
        assert ask(ListKinds()).target == name
        if name == "patient":
            return answered.wait(WAIT)
        assert ask(ListKinds()).ok
        answered.set()
        return True

    with LocalPool([fake("patient"), fake("quick")]) as pool:
        assert pool.talk_to_each(["patient", "quick"], talk) == {"patient": True, "quick": True}


@pytest.mark.parametrize(
    ("seconds", "size", "layers"),
    [
        (0.0, 0, 16),  # at most twice as many
        (0.125, 0, 16),
        (0.25, 0, 8),  # as long as it may take
        (0.5, 0, 4),
        (100.0, 0, 1),  # slow ones one by one
        (0.0, 128 << 10, 16),
        (0.0, 256 << 10, 8),
        (0.0, 1 << 30, 1),  # large ones too
    ],
)
def test_how_far_targets_go_ahead_is_what_the_last_layers_cost(
    seconds: float, size: int, layers: int
) -> None:
    assert Stretch(8).after(seconds, size).layers == layers


@pytest.mark.parametrize(
    ("layers", "size", "is_over"),
    [(3, 0, False), (4, 0, True), (1, (256 << 10) - 1, False), (1, 256 << 10, True)],
)
def test_a_large_layer_among_small_ones_ends_it(layers: int, size: int, is_over: bool) -> None:
    assert Stretch(4).is_over(layers, size) is is_over
