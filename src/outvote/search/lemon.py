"""LEMON's guidance (section 3.2): rare seeds first, rules by their success, amplifiers breed."""

from __future__ import annotations

from typing import Any

import numpy as np

from outvote.search.strategy import Choice, Experience, Offspring

NAME = "lemon"
GROUPS = (NAME,)  # of the rules that it uses
P = 0.08  # of the geometric distribution over the ranks of the rules (section 4.4)


class Lemon:
    """Roulette wheel over seeds (equations 4, 5), Metropolis-Hastings over rules (equation 6)."""

    def __init__(self, memory: Experience) -> None:
        self._memory = memory

    def ask(self) -> Choice:
        return Choice(self._seed(), self._rule())

    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        """A mutant joins the pool when its ACC is not below its seed's (Algorithm 1, line 23)."""
        if offspring.child is None:
            return False
        return self._memory.learn(choice, offspring) and self._memory.join(offspring)

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def _seed(self) -> int:
        """Roulette wheel on 1 / (times chosen + 1)."""
        members, upto = self._memory.members, np.cumsum(self._memory.members.odds)
        place = int(np.searchsorted(upto, self._memory.rng.random() * upto[-1]))
        return members[min(place, len(members) - 1)].number

    def _rule(self) -> str:
        """Accept rule b after a with probability min(1, (1 - p)^(k_b - k_a))."""
        memory = self._memory
        ranked = sorted(memory.rules_of(NAME), key=lambda name: -memory.tallies[name].ratio)
        if memory.last not in ranked:
            return str(memory.rng.choice(ranked))
        before = ranked.index(memory.last)
        while True:
            after = int(memory.rng.integers(len(ranked)))
            if memory.rng.random() < (1 - P) ** (after - before):
                return ranked[after]


STRATEGY = Lemon
