"""Several strategies in one campaign, by their yield: a bandit chooses who is asked next.

UCB1 (Auer, Cesa-Bianchi, Fischer: Finite-time analysis of the multiarmed bandit problem, 2002) on
new findings per request: a search asks the targets many times for one mutant. Lines of the
libraries' Python that nobody had reached before count a little too. All strategies share one pool
of models, so each breeds from what the others kept.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from outvote.search import audee, layers, lemon, random
from outvote.search.strategy import Choice, Experience, Offspring, Strategy

NAME = "mixed"
_ARMS = (lemon, random, audee, layers)
GROUPS = tuple(dict.fromkeys(group for arm in _ARMS for group in arm.GROUPS))
EXPLORATION = 0.2  # findings are rare: UCB1's own 1.4 would never tell the arms apart
LINES_WORTH = 0.1  # new findings that a mutant with new lines is worth
_PATIENCE = 20  # choices in a row whose rule does not apply, before the others go first


class Mixed:
    """Asks the strategy with the best upper bound of its yield."""

    def __init__(self, memory: Experience) -> None:
        self._memory = memory
        self._arms: dict[str, Strategy] = {
            arm.NAME: arm.STRATEGY(memory)
            for arm in _ARMS
            if any(memory.rules_of(group) for group in arm.GROUPS)
        }
        for name in self._arms:
            memory.arms.setdefault(name, [0, 0])
            memory.misses.setdefault(name, 0)
            memory.lined.setdefault(name, 0)

    def ask(self) -> Choice:
        name = max(self._arms, key=lambda arm: (-self._in_vain(arm), self._bound(arm)))
        self._memory.arms[name][0] += 1  # now, so that a generation asks them all
        return replace(self._arms[name].ask(), by=name)

    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        memory = self._memory
        if offspring.child is None:
            memory.arms[choice.by][0] -= 1  # nothing was run: that says nothing
            memory.misses[choice.by] += 1
            return False
        memory.misses[choice.by] = 0
        memory.arms[choice.by][0] += offspring.cost - 1
        memory.arms[choice.by][1] += min(1, offspring.found)
        memory.lined[choice.by] += offspring.lines > 0
        joined = self._arms[choice.by].tell(choice, offspring)
        if joined:  # whose rules applied to no model so far may use this one
            memory.misses.update(dict.fromkeys(memory.misses, 0))
        return joined

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def _in_vain(self, name: str) -> int:
        """How often it was asked in vain beyond our patience; the least goes first."""
        return max(0, self._memory.misses[name] - _PATIENCE)

    def _bound(self, name: str) -> float:
        used, found = self._memory.arms[name]
        if not used:
            return math.inf
        total = sum(self._memory.arms[arm][0] for arm in self._arms)
        worth = found + LINES_WORTH * self._memory.lined[name]
        return worth / used + EXPLORATION * math.sqrt(math.log(total) / used)


STRATEGY = Mixed
