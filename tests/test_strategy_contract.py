"""The contract of every strategy: asked and told, it proposes what it may, stops and goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from outvote.campaign.probes.prober import GROUP, PROBES
from outvote.mutate.registry import all_rules
from outvote.search.layers import REFILLING
from outvote.search.registry import strategies, strategy
from outvote.search.strategy import Choice, Experience, Offspring, Strategy

STRATEGIES = strategies()
RULES = {
    **{name: rule.GROUP for name, rule in all_rules("keras").items()},
    **dict.fromkeys(PROBES, GROUP),
}
GUIDE = Path(__file__).parent.parent / "docs" / "fuzz.md"
SEEDS = {1: 10.0, 2: 5.0}
IN_VAIN = 2000  # choices after which a campaign gives up


def made(name: str, seed: int = 0) -> Strategy:
    return strategy(name, Experience.new(SEEDS, RULES, seed))


def go_on(asked: Strategy, first: int, count: int) -> list[Choice]:
    """Mutants of all sorts: some run, some amplify, some may not breed, some find something."""
    choices = []
    for number in range(first, first + count):
        choices.append(asked.ask())
        child = None if number % 7 == 0 else number
        acc = None if number % 5 == 0 else float(number % 20)
        breeds, lines, varies = number % 3 > 0, (number % 11) // 5, number % 4 > 0
        offspring = Offspring(child, acc, breeds, number % 2, 1 + number % 4, lines, varies)
        asked.tell(choices[-1], offspring)
    return choices


def members(asked: Strategy) -> list[int]:
    return [member.number for member in Experience.restored(asked.state()).members]


def parents(asked: Strategy) -> set[int]:
    """The pool, and what is varied beside it."""
    state = asked.state()
    return {*members(asked), *(number for number, _ in state["varied"]), *state["refilled"]}


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_it_says_whose_rules_it_uses_and_the_guide_names_it(name: str) -> None:
    module = STRATEGIES[name]
    assert module.GROUPS
    assert set(module.GROUPS) <= set(RULES.values()), "no rule is of this group"
    chapter = GUIDE.read_text().split("## Strategies")[1].split("\n## ")[0]
    assert f"`{name}`" in chapter


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_it_proposes_models_of_the_pool_and_its_own_rules(name: str) -> None:
    asked = made(name)
    groups = STRATEGIES[name].GROUPS
    for start in range(100, 900, 50):
        choices, known = [], parents(asked)
        for number in range(start, start + 50):
            choices += go_on(asked, number, 1)
            known |= parents(asked)
        assert {choice.parent for choice in choices} <= known
        assert {RULES[choice.rule] for choice in choices} <= set(groups)


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_what_is_told_decides_who_joins(name: str) -> None:
    asked = made(name)
    choice = asked.ask()
    assert not asked.tell(choice, Offspring(None))
    for number, (acc, breeds) in enumerate([(None, True), (99.0, False)], start=100):
        choice = asked.ask()
        assert not asked.tell(choice, Offspring(number, acc, breeds))
    assert members(asked) == list(SEEDS)
    choice = asked.ask()
    joined = asked.tell(choice, Offspring(300, 99.0))
    assert members(asked) == [*SEEDS, *([300] if joined else [])]


def test_what_reaches_new_lines_is_varied_for_some_tries_beside_the_pool() -> None:
    rules = {name: group for name, group in RULES.items() if name != "REFILL"}
    asked = strategy("layers", Experience.new(SEEDS, rules, 0))
    assert not asked.tell(asked.ask(), Offspring(100, 1.0, lines=3))  # it may not be varied
    assert not asked.tell(asked.ask(), Offspring(101, 1.0, varies=True))  # it reached nothing
    assert {asked.ask().rule for _ in range(50)} == {"FL", "BR"}
    assert asked.tell(asked.ask(), Offspring(102, None, False, lines=3, varies=True))
    assert members(asked) == list(SEEDS)
    choices = [asked.ask() for _ in range(50)]
    assert [choice.parent for choice in choices if choice.rule == "AGAIN"] == [102] * 4
    assert asked.state()["varied"] == []


@pytest.mark.parametrize(
    ("found", "least", "most"), [((0, 0), 0.4, 0.6), ((1, 0), 0.02, 0.1), ((0, 1), 0.4, 0.6)]
)
def test_layers_are_varied_as_often_as_that_brings_something_new(
    found: tuple[int, int], least: float, most: float
) -> None:
    """What is drawn, and what varies it, each either always shows something new or never."""
    asked = strategy("layers", Experience.new(SEEDS, {"FL": "layers", "AGAIN": "neighbours"}, 0))
    rules = []
    for number in range(100, 700):
        choice = asked.ask()
        rules.append(choice.rule)
        new = found[choice.rule == "AGAIN"]
        asked.tell(choice, Offspring(number, None, False, new, lines=9, varies=True))
    late = rules[200:]
    assert least <= late.count("AGAIN") / len(late) <= most


def test_without_the_rule_that_varies_nothing_is_kept_for_it() -> None:
    asked = strategy("layers", Experience.new(SEEDS, {"FL": "layers"}, 0))
    assert not asked.tell(asked.ask(), Offspring(100, None, False, lines=3, varies=True))
    assert {asked.ask().rule for _ in range(20)} == {"FL"}


def test_every_layer_gets_other_numbers_at_once_where_that_is_cheap_and_they_none_of_theirs() -> (
    None
):
    asked = strategy("layers", Experience.new(SEEDS, {"FL": "layers", "REFILL": "values"}, 0))
    assert not asked.tell(asked.ask(), Offspring(100, None, False))  # it is known
    assert asked.tell(asked.ask(), Offspring(101, None, False, varies=True))
    refills = [asked.ask() for _ in range(6)]
    assert refills == [Choice(101, "REFILL")] * 6
    assert not asked.tell(refills[0], Offspring(102, None, False, lines=3, varies=True))
    assert asked.ask().rule == "FL"


def test_new_lines_are_worth_a_little_to_the_bandit() -> None:
    rules = {"LC": "lemon", "FL": "layers"}

    def asked_of_layers(lines: int, found: int) -> int:
        mixed = strategy("mixed", Experience.new(SEEDS, rules, 0))
        for number in range(100, 400):
            choice = mixed.ask()
            is_layers = choice.by == "layers"
            offspring = Offspring(
                number, 0.0, False, found if not is_layers else 0, 1, lines if is_layers else 0
            )
            mixed.tell(choice, offspring)
        return int(mixed.state()["arms"]["layers"][0])

    assert asked_of_layers(0, 0) < asked_of_layers(5, 0)
    assert asked_of_layers(5, 1) < asked_of_layers(5, 0)


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_it_is_restored_as_if_it_had_not_stopped_and_a_seed_repeats_it(name: str) -> None:
    one = made(name)
    first = go_on(one, 100, 60)
    assert go_on(made(name), 100, 60) == first
    assert go_on(made(name, seed=1), 100, 60) != first
    state = json.loads(json.dumps(one.state()))
    assert go_on(strategy(name, Experience.restored(state)), 200, 60) == go_on(one, 200, 60)


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_the_one_rule_that_applies_is_found_before_a_campaign_gives_up(name: str) -> None:
    for rule in (rule for rule, group in RULES.items() if group in STRATEGIES[name].GROUPS):
        asked = made(name)
        for mutant in range(20):
            for number in range(200, 210):  # there is something to vary, and to fill anew
                while RULES[(choice := asked.ask()).rule] == REFILLING:
                    asked.tell(choice, Offspring(None))
                asked.tell(choice, Offspring(number, 0.0, False, lines=9, varies=True))
            in_vain = 0
            while (choice := asked.ask()).rule != rule:
                asked.tell(choice, Offspring(None))
                in_vain += 1
                assert in_vain < IN_VAIN, f"{rule} is never asked for"
            asked.tell(choice, Offspring(100 + mutant, 0.0, breeds=False))
