"""Searches and localisations as the papers have them, on numbers that are known."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outvote.core.errors import UsageError
from outvote.core.model import REF, Input, Layer, Model, Ref
from outvote.core.outputs import Outputs
from outvote.localize.causal import Accident, Cause, Effect, causes, change_rate
from outvote.localize.introduction import EPSILON, deviation, introduction
from outvote.search import audee, lemon, mixed
from outvote.search.registry import find_strategy, strategies, strategy
from outvote.search.strategy import Choice, Experience, Offspring

RULES = {"LC": "lemon", "LR": "lemon", "GF": "lemon", "NET": "audee", "ILL": "audee", "IN": "audee",
         "BR": "layers"}  # fmt: skip
FEW = settings(max_examples=25)


def memory(*accs: float, rules: dict[str, str] = RULES, seed: int = 0) -> Experience:
    return Experience.new(dict(enumerate(accs or (1.0, 1.0))), rules, seed)


# Guidance.


def test_lemon_prefers_models_that_were_chosen_seldom() -> None:
    """Equations 4 and 5: the chance is 1 / (times chosen + 1), as a share of all."""
    state = memory(1.0, 1.0, 1.0).state()
    state["members"] = [[number, 1.0, chosen] for number, chosen in enumerate((0, 1, 4))]
    search = lemon.Lemon(Experience.restored(state))
    drawn = Counter(search.ask().parent for _ in range(3000))
    shares = np.array([1, 1 / 2, 1 / 5])
    shares /= shares.sum()
    for number, share in enumerate(shares):
        assert drawn[number] / 3000 == pytest.approx(share, abs=0.04)


def test_lemon_prefers_rules_that_succeeded() -> None:
    """Equation 6: after the best rule, one that ranks k places below is taken by (1 - p)^k."""
    ranked = [f"R{n:02}" for n in range(20)]
    known = memory(rules={**dict.fromkeys(ranked, "lemon"), "NET": "audee"})
    for place, name in enumerate(ranked):
        known.tallies[name].used, known.tallies[name].succeeded = 40, 40 - place
    search = lemon.Lemon(known)
    known.last = ranked[0]
    drawn = Counter(search.ask().rule for _ in range(3000))
    weights = np.array([(1 - lemon.P) ** k for k in range(20)])
    weights /= weights.sum()
    assert set(drawn) == set(ranked)  # and none of another's
    for places in (slice(0, 5), slice(5, 10), slice(10, 20)):
        share = sum(drawn[name] for name in ranked[places]) / 3000
        assert share == pytest.approx(weights[places].sum(), abs=0.04)


@pytest.mark.parametrize(("acc", "joins"), [(1.0, True), (0.99, False), (None, False)])
def test_lemon_keeps_a_mutant_that_is_no_less_inconsistent_than_its_seed(
    acc: float | None, joins: bool
) -> None:
    known = memory(1.0)
    search = lemon.Lemon(known)
    assert search.tell(Choice(0, "LC"), Offspring(7, acc)) is joins
    assert [member.number for member in known.members] == ([0, 7] if joins else [0])
    assert (known.members[0].chosen, known.last) == (1, "LC")
    assert (known.tallies["LC"].used, known.tallies["LC"].succeeded) == (1, int(joins))
    assert not search.tell(Choice(0, "LC"), Offspring(None))
    assert known.tallies["LC"].used == 1  # nothing ran: that says nothing
    assert not search.tell(Choice(0, "LC"), Offspring(8, 2.0, breeds=False))


def test_audee_takes_its_rules_by_their_shares_and_half_of_its_models_from_the_seeds() -> None:
    known = memory(1.0)
    known.join(Offspring(5, 1.0))
    search = audee.Audee(known)
    asked = [search.ask() for _ in range(2000)]
    rules = Counter(choice.rule for choice in asked)
    total = sum(audee.SHARES[name] for name in ("NET", "ILL", "IN"))
    for name in ("NET", "ILL", "IN"):
        assert rules[name] / 2000 == pytest.approx(audee.SHARES[name] / total, abs=0.04)
    assert Counter(choice.parent for choice in asked)[0] / 2000 == pytest.approx(0.75, abs=0.05)


def test_the_mix_asks_everybody_first_and_then_who_finds_most() -> None:
    known = memory()
    search = mixed.Mixed(known)
    first = [search.ask() for _ in range(4)]
    assert {choice.by for choice in first} == {"lemon", "random", "audee", "layers"}
    for choice in first:
        assert RULES[choice.rule] in strategies()[choice.by].GROUPS
        search.tell(choice, Offspring(9, 1.0, breeds=False, found=int(choice.by == "layers")))
    for _ in range(60):
        choice = search.ask()
        found = int(choice.by == "layers")
        search.tell(choice, Offspring(9, 1.0, breeds=False, found=found))
    used = {name: row[0] for name, row in known.arms.items()}
    assert used["layers"] > 3 * max(n for name, n in used.items() if name != "layers")


def test_what_costs_much_and_finds_as_little_is_asked_less() -> None:
    known = memory()
    search = mixed.Mixed(known)
    asked: Counter[str] = Counter()
    for _ in range(200):
        choice = search.ask()
        asked[choice.by] += 1
        search.tell(choice, Offspring(9, 1.0, False, cost=50 if choice.by == "audee" else 1))
    assert asked["audee"] * 5 < min(asked[name] for name in ("lemon", "random", "layers"))


def test_who_was_asked_in_vain_waits_until_the_pool_grows() -> None:
    known = memory(rules={"LC": "lemon", "BR": "layers"})
    search = mixed.Mixed(known)
    assert set(known.arms) == {"lemon", "random", "layers"}  # audee has no rules here
    for _ in range(200):
        choice = search.ask()
        alive = choice.by == "layers"
        search.tell(choice, Offspring(9 if alive else None, 1.0, breeds=False))
    assert [search.ask().by for _ in range(10)] == ["layers"] * 10
    assert known.misses["lemon"] > 20
    search.tell(Choice(0, "LC", "lemon"), Offspring(10, 1.0))
    assert set(known.misses.values()) == {0}


@pytest.mark.parametrize("name", sorted(strategies()))
def test_a_strategy_is_made_by_its_name_and_saved_as_plain_data(name: str) -> None:
    import json

    made = strategy(name, memory())
    made.tell(made.ask(), Offspring(3, 5.0))
    state = json.loads(json.dumps(made.state()))
    again = strategy(name, Experience.restored(state))
    assert [again.ask() for _ in range(20)] == [made.ask() for _ in range(20)]


def test_a_strategy_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="there is no strategy 'lemons'; choose from audee, "):
        find_strategy("lemons")


# CRADLE's introduction rate.


def chain(*names: str) -> Model:
    before = ["x", *names]
    layers = tuple(
        Layer(name, "Any", {}, [{REF: [read, 0]}])
        for read, name in zip(before, names, strict=False)
    )
    return Model("m", (Input("x", (None, 1), "float32"),), layers, (Ref(names[-1]),), "keras")


def outputs(*values: float, dtype: str = "float32") -> Outputs:
    return Outputs((np.array([values], dtype),), (dtype,))


numbers = st.floats(-1e3, 1e3, width=32)


@FEW
@given(st.lists(numbers, min_size=1, max_size=5), st.lists(numbers, min_size=5, max_size=5))
def test_the_deviation_is_the_mean_difference(a: list[float], b: list[float]) -> None:
    b = b[: len(a)]
    found = deviation(outputs(*a), outputs(*b))
    assert found == pytest.approx(sum(abs(x - y) for x, y in zip(a, b, strict=True)) / len(a))
    assert found == deviation(outputs(*b), outputs(*a))
    assert deviation(outputs(*a), outputs(*a)) == 0


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (outputs(math.nan, 1.0), outputs(math.nan, 3.0), 1.0),
        (outputs(math.nan), outputs(1.0), math.inf),
        (outputs(math.inf), outputs(math.inf), 0.0),
        (outputs(math.inf), outputs(-math.inf), math.inf),
        (outputs(1.0), outputs(1.0, 2.0), math.inf),
        (Outputs((), ()), Outputs((), ()), 0.0),
        (Outputs((np.zeros((0, 3)),), ("f",)), Outputs((np.zeros((0, 3)),), ("f",)), 0.0),
    ],
)
def test_deviations_of_what_is_no_number(a: Outputs, b: Outputs, found: float) -> None:
    assert deviation(a, b) == found


def test_the_layer_that_introduces_most_is_red_and_not_those_that_pass_it_on() -> None:
    """R = (δ - δ_before) / (δ_before + ε), equations 5 and 6."""
    model = chain("a", "b", "c", "d", "e")
    found = introduction(model, {"a": 0.0, "b": 1e-3, "c": 1.1e-3, "d": 1e-3, "e": 1e-3})
    assert found.rate["b"] == pytest.approx(1e-3 / EPSILON)
    assert found.rate["c"] == pytest.approx(1e-4 / (1e-3 + EPSILON))
    assert found.rate["d"] < 0
    assert (found.red, found.first) == (("b",), "b")
    assert found.threshold == pytest.approx(np.quantile(list(found.rate.values()), 0.75))


def test_behind_infinity_nothing_is_introduced_and_unknown_layers_are_left_out() -> None:
    model = chain("a", "b", "c")
    found = introduction(model, {"a": 0.0, "b": math.inf, "c": math.inf})
    assert (found.rate["b"], found.rate["c"]) == (math.inf, 0.0)
    assert found.first == "b"
    assert set(introduction(model, {"b": 1.0}).rate) == {"b"}
    nothing = introduction(model, {})
    assert (nothing.threshold, nothing.red, nothing.first) == (0.0, (), None)


# AUDEE's causes.


def found_causes(effects: dict[str, dict[Any, Effect | None]]) -> tuple[list[Cause], list[Any]]:
    return causes(
        dict.fromkeys(effects, "now"),
        lambda name, value: list(effects[name]),
        lambda name, value: effects[name][value],
    )


CURED, STILL = Effect(0.0), Effect(5000.0)


@pytest.mark.parametrize(
    ("effects", "is_cause"),
    [
        ([CURED, STILL, STILL, STILL], True),  # the simplest cures
        ([STILL, CURED, CURED, STILL], True),  # half of them do
        ([STILL, CURED, STILL, STILL], False),
        ([STILL, STILL], False),
        ([None, CURED, STILL, STILL], True),  # the simplest that can be made
        ([None, None], False),
        ([Effect(0.0, "crash"), STILL, CURED], True),  # a crash is no cure, and no try
        ([Effect(0.0, "crash")], False),
        ([Effect(1.99)], True),
        ([Effect(2.0)], False),
        ([STILL] * 5 + [CURED] * 5, False),  # no more than five are tried
    ],
)
def test_what_makes_a_parameter_a_cause(effects: list[Effect | None], is_cause: bool) -> None:
    found, _ = found_causes({"p": dict(enumerate(effects))})
    assert bool(found) is is_cause


def test_the_surest_cause_comes_first_and_accidents_are_told() -> None:
    found, accidents = found_causes(
        {
            "half": {1: CURED, 2: STILL},
            "all": {1: CURED, 2: CURED, 3: None},
            "none": {1: STILL, 2: Effect(0.0, "nan")},
        }
    )
    assert found == [Cause("all", "now", (1, 2), 2), Cause("half", "now", (1,), 2)]
    assert accidents == [Accident("none", 2, "nan")]


def test_a_change_is_measured_by_the_size_of_what_comes_out() -> None:
    assert change_rate(outputs(1.0), outputs(1.0)) == 0
    small = change_rate(outputs(0.5, dtype="float64"), outputs(0.5 + 1e-5, dtype="float64"))
    assert small == pytest.approx(1e-5 / EPSILON)
    large = change_rate(outputs(1e6, dtype="float64"), outputs(1e6 + 1.0, dtype="float64"))
    assert large == pytest.approx(1.0 / (EPSILON * 1e6))
    assert change_rate(outputs(1.0), outputs(1.0, 2.0)) == math.inf
    assert change_rate(outputs(1.0), outputs(math.nan)) == math.inf
    assert change_rate(outputs(2.0), outputs(2.5), tolerance=0.25) == 0
    assert change_rate(outputs(2.0), outputs(2.75), tolerance=0.25) > 0
