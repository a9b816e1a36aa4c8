"""A strategy comes back as it was, however long ago its state was written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from outvote.campaign import diary
from outvote.campaign.diary import Diary
from outvote.search.registry import find_strategy, strategies
from outvote.search.strategy import Experience, Offspring
from outvote.store import facts
from outvote.store.rows import ASKED, VAIN, Birth
from outvote.store.store import Store

RULES = {
    "LC": "lemon",
    "LR": "lemon",
    "GF": "lemon",
    "NET": "audee",
    "ILL": "audee",
    "BR": "layers",
}


def begun(store: Store, name: str) -> Diary:
    groups = find_strategy(name).GROUPS
    rules = {rule: group for rule, group in RULES.items() if group in groups}
    store.note(facts.STATE, Experience.new({1: 0.5}, rules, 0).state())
    store.note(facts.STATE_TURN, 0)
    return Diary(store, name)


def go_on(book: Diary, store: Store, numbers: range) -> None:
    """Some of what is asked for does not apply, some is not told yet, some joins."""
    rng = np.random.default_rng(numbers.start)
    for number in numbers:
        choice, _ = book.ask()
        birth = Birth(number, choice.parent, choice.rule, 0)
        book.asked(choice, birth)
        if number % 5 == 0:
            book.strategy.tell(choice, Offspring(None))
            book.add(VAIN, birth, choice.by)
        elif number % 7:
            offspring = Offspring(number, float(rng.random()), found=int(rng.integers(2)))
            book.strategy.tell(choice, offspring)
            book.told(choice, birth, offspring)
        if number % 8 == 0:
            with store.transaction():
                book.note()


@pytest.mark.parametrize("name", sorted(strategies()))
def test_a_strategy_is_rebuilt_of_its_last_state_and_the_turns_since(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        book = begun(store, name)
        go_on(book, store, range(2, 49))
        monkeypatch.setattr(diary, "_PAUSE", 1e9)
        go_on(book, store, range(49, 97))
        written = store.fact(facts.STATE_TURN)
        assert written is not None
        assert 0 < written < store.last_turn(), "it was not written since"
        again = Diary(store, name)
        assert again.strategy.state() == book.strategy.state()
        go_on(book, store, range(97, 101))  # and dies before that is stored
        again.close()
        assert store.fact(facts.STATE) == again.strategy.state()
        assert store.fact(facts.STATE_TURN) == store.last_turn()
        told = store.unanswered()
        assert told
        assert {turn.what for turn in told} == {ASKED}


def test_a_store_of_an_earlier_version_has_all_turns_in_its_state(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)) as store:
        book = begun(store, "random")
        go_on(book, store, range(2, 41))
        store.note(facts.STATE, book.strategy.state())
        store.note(facts.STATE_TURN, None)
        assert Diary(store, "random").strategy.state() == book.strategy.state()


def test_writing_takes_a_small_share_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with closing(Store(tmp_path, create=True)) as store:
        book = begun(store, "random")
        state, wrote = book.strategy.state, list[float]()

        def slow() -> dict[str, object]:
            wrote.append(clock[0])
            clock[0] += 1.0  # as long as it takes to write a hundred thousand models
            return state()

        monkeypatch.setattr(book.strategy, "state", slow)
        for _ in range(2000):
            clock[0] += 0.1
            book.note()
    assert len(wrote) == 4, "2 % of 200 seconds"
