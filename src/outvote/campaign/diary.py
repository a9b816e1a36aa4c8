"""The strategy of a campaign in its store: its turns always, its state now and then.

A state holds the models that may breed, so to write one costs the more the more there are. What
happened since the last one is gone through again from the turns.
"""

from __future__ import annotations

import time
from dataclasses import astuple
from typing import Any

from outvote.search.registry import strategy
from outvote.search.strategy import Choice, Experience, Offspring, Strategy
from outvote.store import facts
from outvote.store.rows import ASKED, TOLD, VAIN, Birth, Turn
from outvote.store.store import Store

_PAUSE = 5.0  # seconds between two states
_SHARE = 0.02  # of the time, that writing them may take


class Diary:
    """Writes down what a strategy is asked and told; brings another one to where it stands."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._turns: list[Turn] = []  # that are not stored yet
        self._due = 0.0  # of the clock
        self.memory, self.strategy = self._restored()

    def _restored(self) -> tuple[Experience, Strategy]:
        store = self._store
        memory = Experience.restored(store.fact(facts.STATE))
        known, last = strategy(self._name, memory), store.fact(facts.STATE_TURN)
        for turn in store.turns(after=last) if last is not None else ():
            go_through(known, memory, turn)
        return memory, known

    def ask(self) -> tuple[Choice, int]:
        """What the strategy wants, and how often it has chosen that rule."""
        choice = self.strategy.ask()
        return choice, _counted(self.memory, choice.rule)

    def asked(self, choice: Choice, birth: Birth) -> None:
        self._turns.append(Turn(ASKED, birth, choice.by))

    def told(self, choice: Choice, birth: Birth, offspring: Offspring) -> None:
        self._turns.append(Turn(TOLD, birth, choice.by, astuple(offspring)))

    def add(self, what: str, birth: Birth, by: str = "") -> None:
        self._turns.append(Turn(what, birth, by))

    def note(self) -> None:
        """All turns so far, and the state if it is due, in the transaction that is open."""
        self._store.record(self._turns)
        self._turns = []
        began = time.monotonic()
        if began >= self._due:
            self._write(self.strategy.state())
            ended = time.monotonic()
            self._due = ended + max(_PAUSE, (ended - began) / _SHARE)

    def close(self) -> None:
        """The state as the stored turns leave it: of what was not stored nothing has happened."""
        _, known = self._restored()
        with self._store.transaction():
            self._write(known.state())

    def _write(self, state: dict[str, Any]) -> None:
        self._store.note(facts.STATE, state)
        self._store.note(facts.STATE_TURN, self._store.last_turn())


def go_through(known: Strategy, memory: Experience, turn: Turn) -> None:
    """One turn once more."""
    choice = Choice(turn.birth.parent, turn.birth.rule, turn.by)
    if turn.what == ASKED:
        known.ask()
        _counted(memory, turn.birth.rule)
    elif turn.what == VAIN:
        known.tell(choice, Offspring(None))
    elif turn.what == TOLD:
        known.tell(choice, Offspring(*turn.told))


def _counted(memory: Experience, rule: str) -> int:
    memory.asked[rule] = memory.asked.get(rule, 0) + 1
    return memory.asked[rule]
