"""LEMON_r, the baseline: the same rules on the same pool, without guidance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outvote.search.strategy import Choice, Memory, Outcome

NAME = "random"


class Strategy:
    """Any seed, any rule; every mutant that runs may breed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def ask(self) -> Choice:
        memory = self._memory
        seed = memory.members[int(memory.rng.integers(len(memory.members)))]
        return Choice(seed.number, str(memory.rng.choice(self.rules())))

    def rules(self) -> list[str]:
        return sorted(self._memory.lemon_rules)

    def tell(self, choice: Choice, outcome: Outcome) -> bool:
        if outcome.child is None:
            return False
        self._memory.learn(choice, outcome)
        return self._memory.join(outcome)

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def members(self) -> Sequence[int]:
        return [member.number for member in self._memory.members]
