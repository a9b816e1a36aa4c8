"""Single layers: fans of freely drawn ones on the seeds, without guidance and without breeding.

Ours: most faults show in one layer with the right parameters, so trying many is worth more than
building large models around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outvote.search.strategy import Choice, Memory, Outcome

NAME = "layers"


class Strategy:
    """Any model of the pool; the pool does not grow."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def ask(self) -> Choice:
        memory = self._memory
        seed = memory.members[int(memory.rng.integers(len(memory.members)))]
        return Choice(seed.number, str(memory.rng.choice(memory.rules_of(NAME))))

    def tell(self, choice: Choice, outcome: Outcome) -> bool:
        if outcome.child is not None:
            self._memory.learn(choice, outcome)
        return False

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def members(self) -> Sequence[int]:
        return [member.number for member in self._memory.members]
