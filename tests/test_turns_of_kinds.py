"""Turns: every kind has its share at even distances, and each card of a deck comes in time."""

from __future__ import annotations

from collections import Counter

import numpy as np

from outvote.dialects.keras.mutate.turns import KindTurn, cards, turn_of
from outvote.mutate.dealt import dealing_seed

SHARES = {"seldom": 1.0, "often": 3.0, "mostly": 6.0}


def turns(count: int, seed: int = 3) -> list[KindTurn]:
    return [turn_of(np.random.default_rng([seed, n]), SHARES) for n in range(count)]


def test_every_kind_has_its_share_at_even_distances() -> None:
    of = [turn.of for turn in turns(200)]
    assert Counter(of) == {"seldom": 20, "often": 60, "mostly": 120}
    for kind, apart in (("seldom", 10), ("often", 10 / 3), ("mostly", 10 / 6)):
        gaps = np.diff([place for place, other in enumerate(of) if other == kind])
        assert gaps.max() <= 2 * apart + 1


def test_the_turns_of_a_kind_are_numbered() -> None:
    for kind in SHARES:
        numbers = [turn.number for turn in turns(50) if turn.of == kind]
        assert numbers == list(range(len(numbers)))


def test_each_card_comes_once_before_one_comes_again() -> None:
    deck = cards({"a": 2, "b": 1, "c": 1})
    dealt = [KindTurn("kind", n, 5).dealt("deck", deck) for n in range(12)]
    assert all(Counter(dealt[n : n + 4]) == {"a": 2, "b": 1, "c": 1} for n in (0, 4, 8))
    assert len({tuple(dealt[n : n + 4]) for n in (0, 4, 8)}) > 1  # and in another order


def test_a_rule_that_gets_few_of_the_numbers_deals_all_cards_too() -> None:
    rng = np.random.default_rng(0)
    numbers = np.flatnonzero(rng.random(500) < 1 / 7)[:50]  # the others go to other rules
    turns = [
        turn_of(np.random.default_rng([dealing_seed(3, count), number]), {"kind": 1.0})
        for count, number in enumerate(numbers, 1)
    ]
    assert [turn.number for turn in turns] == list(range(50))
    assert {turn.seed for turn in turns} == {3}
    assert {turn.dealt("deck", range(50)) for turn in turns} == set(range(50))


def test_decks_kinds_and_seeds_have_orders_of_their_own_and_a_number_always_the_same() -> None:
    deck = range(30)

    def order(kind: str, name: str, seed: int) -> list[int]:
        return [KindTurn(kind, n, seed).dealt(name, deck) for n in deck]

    assert order("kind", "deck", 1) == order("kind", "deck", 1)
    others = [order("other", "deck", 1), order("kind", "other", 1), order("kind", "deck", 2)]
    assert order("kind", "deck", 1) not in others
    assert [turn.of for turn in turns(30)] != [turn.of for turn in turns(30, seed=4)]
    assert turns(30) == turns(30)
