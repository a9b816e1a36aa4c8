"""Single layers: freely drawn ones beside the seeds, without guidance and without breeding.

Ours: most faults show in one layer with the right parameters, so trying many is worth more than
building large models around them.
"""

from __future__ import annotations

from outvote.search import random
from outvote.search.strategy import Choice, Outcome

NAME = "layers"


class Strategy(random.Strategy):
    """Any model of the pool; the pool does not grow."""

    def rules(self) -> list[str]:
        return self._memory.rules_of(NAME)

    def tell(self, choice: Choice, outcome: Outcome) -> bool:
        if outcome.child is not None:
            self._memory.learn(choice, outcome)
        return False
