"""AUDEE (Guo et al., ASE 2020): variants by their parameters, then a search on quiet ones.

Most choices are network mutations, a share tries illegal values, and a few search inputs, weights,
or both (section 2.4): a search asks the targets fifty times where a mutant asks once. The paper
mutates 500 networks, then searches 20 of them; here both go on side by side, so that a campaign can
end at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outvote.search.strategy import Choice, Memory, Outcome

NAME = "audee"
SHARES = {"NET": 0.7, "ILL": 0.2, "IN": 0.04, "WT": 0.03, "IN-WT": 0.03}
_BRED = 0.5  # of the choices, from variants; the others from the seeds


class Strategy:
    """Any model; rules by fixed shares. Variants that run breed; what was searched does not."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def ask(self) -> Choice:
        memory, rules = self._memory, self._memory.audee_rules
        weights = [SHARES[name] for name in rules]
        rule = memory.rng.choice(rules, p=[weight / sum(weights) for weight in weights])
        first = memory.members[: max(1, len(memory.members) - self._variants)]
        pool = memory.members if memory.rng.random() < _BRED else first
        return Choice(pool[int(memory.rng.integers(len(pool)))].number, str(rule))

    def tell(self, choice: Choice, outcome: Outcome) -> bool:
        if outcome.child is None:
            return False
        self._memory.learn(choice, outcome)
        return choice.rule == "NET" and self._memory.join(outcome)

    def state(self) -> dict[str, Any]:
        return self._memory.state()

    def members(self) -> Sequence[int]:
        return [member.number for member in self._memory.members]

    @property
    def _variants(self) -> int:
        """Members that joined later: seeds have the lowest numbers, in a row from 1."""
        numbers = [member.number for member in self._memory.members]
        return sum(number != place + 1 for place, number in enumerate(numbers))
