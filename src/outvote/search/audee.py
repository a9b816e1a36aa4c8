"""AUDEE (Guo et al., ASE 2020): variants by their parameters, then a search on quiet ones.

Most choices are network mutations, a share tries illegal values, and a few search inputs, weights,
or both (section 2.4): a search asks the targets fifty times where a mutant asks once. The paper
mutates 500 networks, then searches 20 of them; here both go on side by side, so that a campaign can
end at any time.
"""

from __future__ import annotations

from typing import Any

from outvote.search.strategy import Choice, Experience, Offspring

NAME = "audee"
GROUPS = (NAME,)  # of the rules that it uses
SHARES = {"NET": 0.7, "ILL": 0.2, "IN": 0.04, "WT": 0.03, "IN-WT": 0.03}
_SHARE = 0.1  # of a rule that is not among them
_BRED = 0.5  # of the choices, from variants; the others from the seeds


class Audee:
    """Any model; rules by fixed shares. Variants that run breed; what was searched does not."""

    def __init__(self, memory: Experience) -> None:
        self._memory = memory

    def ask(self) -> Choice:
        memory, rules = self._memory, self._memory.rules_of(NAME)
        weights = [SHARES.get(name, _SHARE) for name in rules]
        rule = memory.rng.choice(rules, p=[weight / sum(weights) for weight in weights])
        bred = memory.rng.random() < _BRED
        members = memory.members
        place = int(memory.rng.integers(len(members) if bred else members.seeds))
        return Choice(members[place].number, str(rule))

    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        if offspring.child is None:
            return False
        self._memory.learn(choice, offspring)
        return self._memory.join(offspring)

    def state(self) -> dict[str, Any]:
        return self._memory.state()


STRATEGY = Audee
