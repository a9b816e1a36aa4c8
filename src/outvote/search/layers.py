"""Single layers: freely drawn ones beside the seeds, and variations of those that were worth it.

Ours: most faults show in one layer with the right parameters, so trying many is worth more than
building large models around them. A layer that was the first to reach lines of a library's own
Python is varied for some tries, as long as the campaign is told of lines, and as often as that
brings something new beside layers that are drawn. Where all that is run
waits for code that is compiled for every shape, each layer is run on other numbers besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from outvote.search.random import Unguided
from outvote.search.strategy import Choice, Experience, Offspring

NAME = "layers"
AHEAD = True
VARYING = "neighbours"  # the group of the rules that vary a layer
REFILLING = "values"  # of those that give it other numbers, where that is much cheaper
GROUPS = (NAME, VARYING, REFILLING)  # of the rules that it uses
_LEAST, _MOST = 0.05, 0.5  # of the choices, that vary what there is to vary
_NEW, _OF = 1, 10  # as if so many of so many mutants had shown something new, before there are any
_MOST_TRIES = 8
_REFILLS = 6  # of every layer: each costs a fiftieth of a new one


class SingleLayers(Unguided):
    """Any model of the pool, which does not grow; beside it, layers that reached new lines."""

    def __init__(self, memory: Experience) -> None:
        super().__init__(memory, (NAME,) if memory.rules_of(NAME) else GROUPS)
        self._varying = memory.rules_of(VARYING)
        self._refilling = memory.rules_of(REFILLING)

    def ask(self) -> Choice:
        memory = self._memory
        if memory.refilled:
            return Choice(memory.refilled.pop(0), str(memory.rng.choice(self._refilling)))
        if memory.varied and self._varying and memory.rng.random() < self._share:
            return self._variation()
        return super().ask()

    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        """True also for a layer that will be varied or refilled: it has to be kept."""
        if offspring.child is None:
            return False
        self._memory.count(choice, offspring)
        if choice.rule in self._refilling:
            self._memory.tallies[choice.rule].used += 1
            return False
        refills = bool(self._refilling) and offspring.varies
        if refills:
            self._memory.refilled += [offspring.child] * _REFILLS
        if choice.rule in self._varying:
            self._memory.tallies[choice.rule].used += 1
        else:
            super().tell(choice, replace(offspring, breeds=False))
        if not (self._varying and offspring.lines and offspring.varies):
            return refills
        self._memory.varied.append([offspring.child, min(_MOST_TRIES, 1 + offspring.lines)])
        return True

    @property
    def _share(self) -> float:
        """Of the choices, as a mutant that varies shows something new beside one that is drawn."""
        drawn = self._memory.rules_of(NAME)
        if not drawn:
            return _MOST
        varying, drawing = self._rate(self._varying), self._rate(drawn)
        return min(_MOST, max(_LEAST, varying / (varying + drawing)))

    def _rate(self, rules: Sequence[str]) -> float:
        rows = [self._memory.yields.get(rule, (0, 0)) for rule in rules]
        return (_NEW + sum(new for _, new in rows)) / (_OF + sum(count for count, _ in rows))

    def _variation(self) -> Choice:
        memory = self._memory
        place = int(memory.rng.integers(len(memory.varied)))
        parent, tries = memory.varied.pop(place)
        if tries > 1:
            memory.varied.append([parent, tries - 1])
        return Choice(parent, str(memory.rng.choice(self._varying)))


STRATEGY = SingleLayers
