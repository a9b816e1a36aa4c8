"""Several strategies in one campaign, by their yield: a bandit chooses who is asked next.

UCB1 (Auer, Cesa-Bianchi, Fischer: Finite-time analysis of the multiarmed bandit problem, 2002) on
new findings per request: a search asks the targets many times for one mutant. All strategies share
one pool of models, so each breeds from what the others kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from outvote.search import audee, layers, lemon, random
from outvote.search.strategy import Choice, Memory, Outcome
from outvote.search.strategy import Strategy as Arm

NAME = "mixed"
EXPLORATION = 0.2  # findings are rare: UCB1's own 1.4 would never tell the arms apart


class Strategy:
    """Asks the strategy with the best upper bound of its yield."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._arms: dict[str, Arm] = {}
        if memory.lemon_rules:
            self._arms = {"lemon": lemon.Strategy(memory), "random": random.Strategy(memory)}
        if memory.audee_rules:
            self._arms["audee"] = audee.Strategy(memory)
        if memory.rules_of("layers"):
            self._arms["layers"] = layers.Strategy(memory)
        for name in self._arms:
            memory.arms.setdefault(name, [0, 0])

    def ask(self) -> Choice:
        name = max(self._arms, key=self._bound)
        self._memory.arms[name][0] += 1  # now, so that a generation asks them all
        return replace(self._arms[name].ask(), by=name)

    def tell(self, choice: Choice, outcome: Outcome) -> bool:
        if outcome.child is None:
            self._memory.arms[choice.by][0] -= 1  # nothing was run: that says nothing
            return False
        self._memory.arms[choice.by][0] += outcome.cost - 1
        self._memory.arms[choice.by][1] += min(1, outcome.found)
        return self._arms[choice.by].tell(choice, outcome)

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def members(self) -> Sequence[int]:
        return [member.number for member in self._memory.members]

    def _bound(self, name: str) -> float:
        used, found = self._memory.arms[name]
        if not used:
            return math.inf
        total = sum(self._memory.arms[arm][0] for arm in self._arms)
        return found / used + EXPLORATION * math.sqrt(math.log(total) / used)
