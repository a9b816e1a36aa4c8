"""Algorithm 1 on models whose answers and gradients are known by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from outvote.core.answers import Oracle
from outvote.core.arrays import Array
from outvote.core.explore_protocol import Rules
from outvote.worker.explore.climb import ClimbSettings, Found, Inputs, Search
from outvote.worker.explore.constraints import built_in
from outvote.worker.explore.neurons import Activations, sections


@dataclass
class Lines:
    """Models that say class 1 where x[0] exceeds their limit; one neuron each, x[1]."""

    limits: Sequence[float]
    slope: float = 1.0
    calls: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)
    widths: Sequence[int] = ()
    neuron_counts: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.widths = [2] * len(self.limits)
        self.neuron_counts = [1] * len(self.limits)

    def answers(self, inputs: Inputs) -> list[Array]:
        ones = [1 / (1 + np.exp(-self.slope * (inputs[0][:, 0] - limit))) for limit in self.limits]
        return [np.stack([1 - p, p], axis=1) for p in ones]

    def gradients(
        self, inputs: Inputs, chosen: Sequence[Array], neurons: Sequence[Array] | None
    ) -> tuple[Inputs, list[Array]]:
        answers = self.answers(inputs)
        self.calls.append(len(inputs[0]))
        gradient = np.zeros_like(inputs[0])
        for answer, weights in zip(answers, chosen, strict=True):
            change = self.slope * answer[:, 0] * answer[:, 1]
            gradient[:, 0] += change * (weights[:, 1] - weights[:, 0])
        if neurons is not None:
            gradient[:, 1] += sum(n[:, 0] for n in neurons)
        return [gradient], answers

    def uncovered(self) -> list[Array]:
        return [np.array([0]) for _ in self.limits]

    def cover(self, inputs: Inputs) -> None:
        self.covered.append(len(inputs[0]))


def search(models: Lines, seeds: Array, seed: int = 0, **more: float) -> Found:
    settings = ClimbSettings(
        lambda1=more.get("lambda1", 2.0),
        lambda2=more.get("lambda2", 0.0),
        iterations=int(more.get("iterations", 30)),
        seed=seed,
    )
    limits = Rules(np.full(2, -10.0), np.full(2, 10.0), more.get("step", 0.2))
    looking = Search(models, Oracle("classes"), [built_in("none")], [limits], settings)
    return looking.run([seeds], np.arange(len(seeds)) + 5, 0, lambda share: None)


def test_it_climbs_to_where_the_models_differ() -> None:
    seeds = np.array([[0.0, 0.0], [0.5, 0.0], [1.5, 0.0], [-2.0, 0.0]])
    models = Lines([1.0, 2.0])
    found = search(models, seeds)
    assert found.already.tolist() == [7]
    assert set(found.index) <= {5, 6, 8}
    assert len(found.index)
    x = found.inputs[0][:, 0]
    assert ((x > 1) & (x <= 2)).all()
    labels = [answer.argmax(axis=1) for answer in found.answers]
    assert (labels[0] != labels[1]).all()
    assert all(answer.argmax(axis=1).tolist() == [0] * len(x) for answer in found.before)


def test_finished_seeds_leave_the_batch() -> None:
    seeds = np.stack([np.linspace(-3, 0.9, 20), np.zeros(20)], axis=1)
    models = Lines([1.0, 2.0])
    found = search(models, seeds)
    assert models.calls[0] == 20
    assert models.calls == sorted(models.calls, reverse=True)
    # What differs after iteration i is seen when the next gradient is asked for.
    gone = [20 - int((found.iterations < call).sum()) for call in range(len(models.calls))]
    assert len(found.index) > 10
    assert all(left <= most for left, most in zip(models.calls, gone, strict=True))


def test_the_seeds_are_independent_of_their_batch() -> None:
    seeds = np.stack([np.linspace(-3, 0.9, 20), np.zeros(20)], axis=1)
    together = search(Lines([1.0, 2.0]), seeds)
    settings = ClimbSettings(2.0, 0.0, 30, 0)
    limits = Rules(np.full(2, -10.0), np.full(2, 10.0), 0.2)
    alone = Search(Lines([1.0, 2.0]), Oracle("classes"), [built_in("none")], [limits], settings)
    for row in range(20):
        found = alone.run([seeds[row : row + 1]], np.array([row + 5]), 0, lambda share: None)
        same = together.index == row + 5
        assert np.array_equal(found.inputs[0], together.inputs[0][same])


def test_another_seed_of_chance_chooses_other_models() -> None:
    seeds = np.zeros((40, 2))
    first, again, other = (search(Lines([1.0, 2.0]), seeds, seed=n) for n in (0, 0, 1))
    assert np.array_equal(first.chosen, again.chosen)
    assert not np.array_equal(first.chosen, other.chosen)


def test_seeds_that_differ_are_covered_and_lambda2_moves_neurons() -> None:
    models = Lines([1.0, 2.0])
    found = search(models, np.array([[0.9, 0.0], [1.5, 0.0]]), lambda2=0.5)
    assert models.covered == [1]  # what differs from the start; finds are covered when kept
    assert len(found.index) == 1
    assert (found.inputs[0][:, 1] > 0).all()


def test_a_flat_gradient_and_a_closed_range_are_told() -> None:
    flat = search(Lines([1.0, 2.0], slope=0.0), np.zeros((3, 2)))
    assert (flat.flat, flat.unmoved, len(flat.index)) == (3, 3, 0)
    settings = ClimbSettings(1.0, 0.1, 5, 0)
    closed = Rules(np.zeros(2), np.zeros(2), 0.2)
    stuck = Search(Lines([1.0, 2.0]), Oracle("classes"), [built_in("none")], [closed], settings)
    found = stuck.run([np.zeros((3, 2))], np.arange(3), 0, lambda share: None)
    assert (found.flat, found.unmoved) == (0, 3)


def test_nan_is_never_an_agreement() -> None:
    oracle = Oracle("classes")
    good, bad = np.array([[0.1, 0.9]]), np.array([[np.nan, 0.9]])
    for differ in (oracle.differ, oracle.clearly_differ):
        assert differ([good, bad]).tolist() == [True]
        assert differ([bad, bad]).tolist() == [True]
        assert differ([good, good]).tolist() == [False]


def test_a_difference_on_a_knifes_edge_is_not_clear() -> None:
    """What 1e-4 of rounding could undo is climbed on from, not kept."""
    oracle = Oracle("classes")
    one, two, edge = (np.array([row]) for row in ([0.1, 0.9], [0.9, 0.1], [0.50002, 0.49998]))
    assert oracle.differ([one, edge]).tolist() == [True]
    assert oracle.clearly_differ([one, edge]).tolist() == [False]
    assert oracle.clearly_differ([one, two, edge]).tolist() == [True]
    assert oracle.clearly_differ([edge, edge]).tolist() == [False]
    bins = Oracle("values", edges=(0.0, 1.0))
    left, on, right = (np.array([[value]]) for value in (-0.5, 1e-7, 0.5))
    assert bins.differ([left, on]).tolist() == [True]
    assert bins.clearly_differ([left, on]).tolist() == [False]
    assert bins.clearly_differ([left, right]).tolist() == [True]
    apart = Oracle("values", tolerance=1.0)
    assert apart.differ([left, left + 1.000001]).tolist() == [True]
    assert apart.clearly_differ([left, left + 1.000001]).tolist() == [False]
    assert apart.clearly_differ([left, left + 1.1]).tolist() == [True]


@pytest.mark.slow
def test_what_is_found_differs_clearly() -> None:
    seeds = np.stack([np.linspace(-3, 0.9, 60), np.zeros(60)], axis=1)
    found = search(Lines([1.0, 1.02], slope=0.05), seeds, step=0.001, iterations=300)
    assert len(found.index) == 0  # between the limits neither model leads by more than 0.001
    wide = search(Lines([1.0, 2.0]), seeds, step=0.003, iterations=400)
    assert len(wide.index)
    for answer in wide.answers:
        assert (np.abs(answer[:, 0] - answer[:, 1]) > 1e-3).all()


@pytest.mark.parametrize(
    ("tolerance", "edges", "expected"),
    [
        (0.5, (), [False, True, True]),
        (None, (-0.1, 0.1), [True, False, True]),
        (0.5, (-0.1, 0.1), [False, False, True]),
    ],
)
def test_values_differ_by_distance_and_by_bins(
    tolerance: float | None, edges: tuple[float, ...], expected: list[bool]
) -> None:
    a, b = np.array([[0.0], [0.2], [-1.0]]), np.array([[0.2], [0.9], [1.0]])
    assert Oracle("values", tolerance, edges).differ([a, b]).tolist() == expected


def test_neurons_are_scaled_within_their_layer() -> None:
    """Layer one: 0, 2, 4 within [0, 4]; layer two is constant, so its neuron counts as 0."""
    seen = Activations(
        np.array([[0.0, 2.0, 4.0, 3.0]]), np.array([[0.0, 3.0]]), np.array([[4.0, 3.0]]), [3, 1]
    )
    assert seen.scaled().tolist() == [[0.0, 0.5, 1.0, 0.0]]
    assert seen.top(1).tolist() == [False, False, True, True]


def test_sections_of_the_usual_range() -> None:
    neurons = np.array([[0.0, 5.0], [0.99, -1.0], [1.0, 2.5]])
    hit = sections(neurons, np.array([0.0, 0.0]), np.array([1.0, 4.0]), 4)
    assert hit.tolist() == [[True, False, False, True], [False, False, True, False]]
