"""LEMON_r, the baseline: the same rules on the same pool, without guidance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outvote.search.strategy import Choice, Experience, Offspring

NAME = "random"
GROUPS = ("lemon",)  # of the rules that it uses


class Unguided:
    """Any seed, any rule; every mutant that runs may breed."""

    def __init__(self, memory: Experience, groups: Sequence[str] = GROUPS) -> None:
        self._memory = memory
        self._rules = sorted(rule for group in groups for rule in memory.rules_of(group))

    def ask(self) -> Choice:
        memory = self._memory
        seed = memory.members[int(memory.rng.integers(len(memory.members)))]
        return Choice(seed.number, str(memory.rng.choice(self._rules)))

    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        if offspring.child is None:
            return False
        self._memory.learn(choice, offspring)
        return self._memory.join(offspring)

    def state(self) -> dict[str, Any]:
        return self._memory.state()


STRATEGY = Unguided
