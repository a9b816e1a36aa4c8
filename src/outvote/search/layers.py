"""Single layers: freely drawn ones beside the seeds, without guidance and without breeding.

Ours: most faults show in one layer with the right parameters, so trying many is worth more than
building large models around them.
"""

from __future__ import annotations

from dataclasses import replace

from outvote.search.random import Unguided
from outvote.search.strategy import Choice, Experience, Offspring

NAME = "layers"
GROUPS = (NAME,)  # of the rules that it uses


class SingleLayers(Unguided):
    """Any model of the pool; the pool does not grow."""

    def __init__(self, memory: Experience) -> None:
        super().__init__(memory, GROUPS)

    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        return super().tell(choice, replace(offspring, breeds=False))


STRATEGY = SingleLayers
