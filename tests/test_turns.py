"""Targets that compile for every shape run some of the mutants, by number alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import fake
from outvote.campaign.job import Budget, FuzzJob, SeedFile
from outvote.campaign.rules import rules_of
from outvote.campaign.turns import PERIODS, all_wait, who_runs
from outvote.core.target import COSTS, Target
from outvote.dialects.keras.targets import BUILT_IN


def slow(name: str, *costs: str) -> Target:
    return replace(fake(name), costs=frozenset(costs))


def test_costs_that_decide_are_costs_of_targets() -> None:
    assert PERIODS.keys() <= COSTS.keys()


@pytest.mark.parametrize(("cost", "period"), PERIODS.items())
def test_a_costly_target_runs_its_share_and_the_others_run_all(cost: str, period: int) -> None:
    targets = [fake("a"), fake("b"), slow("late", cost)]
    ran = [who_runs(number, targets) for number in range(8 * period)]
    assert all({"a", "b"} <= set(names) for names in ran)
    assert sum("late" in names for names in ran) == 8
    assert not all_wait(targets)
    assert not all_wait(targets[:2])


def test_two_of_them_take_turns() -> None:
    targets = [fake("a"), fake("b"), *(slow(n, "compiles_per_shape") for n in ("one", "two"))]
    ran = [set(who_runs(number, targets)) & {"one", "two"} for number in range(4)]
    assert sorted(map(sorted, ran)) == [["one"], ["one"], ["two"], ["two"]]


@pytest.mark.parametrize(
    "targets",
    [
        [fake("a"), slow("late", "compiles_per_shape")],
        [fake("a", library="x"), fake("b", library="x"), slow("late", "compiles_slowly")],
    ],
    ids=["one other", "others of one library"],
)
def test_every_mutant_is_run_by_two_libraries(targets: list[Target]) -> None:
    everybody = [target.name for target in targets]
    assert [who_runs(number, targets) for number in range(8)] == [everybody] * 8
    assert all_wait(targets)


def test_jax_is_such_a_target() -> None:
    names = ("tensorflow", "jax", "torch", "numpy", "openvino")
    targets = [BUILT_IN[name] for name in names]
    assert [len(who_runs(number, targets)) for number in range(4)] == [4, 5, 4, 5]


@pytest.mark.parametrize(
    ("names", "refilled"), [(("jax", "torch"), True), (("torch", "numpy"), False)]
)
def test_layers_get_other_numbers_where_all_that_is_run_waits_for_jax(
    names: tuple[str, ...], refilled: bool
) -> None:
    targets = tuple(BUILT_IN[name] for name in names)
    job = FuzzJob((SeedFile("seed", Path("any"), None),), targets, "layers", Budget(mutants=1))
    assert ("REFILL" in rules_of(job)) is refilled
    assert {"FL", "AGAIN"} <= rules_of(job).keys()
    assert list(rules_of(replace(job, rules=("FL", "REFILL")))) == ["FL", "REFILL"]
