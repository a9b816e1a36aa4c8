"""What every strategy has in common: the pool of models to breed from, and its ask and tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from outvote.search.members import Member, Members


@dataclass(frozen=True)
class Choice:
    """A model to breed from, by its number, and the rule to use on it."""

    parent: int
    rule: str
    by: str = ""  # the strategy that chose, where several do


@dataclass(frozen=True)
class Offspring:
    """What came of a choice. `child` is None where the rule did not apply or nothing ran.

    `acc` is LEMON's ACC: the inconsistencies of the mutant, summed over inputs and pairs.
    """

    child: int | None
    acc: float | None = None
    breeds: bool = True  # False: not wanted in the pool, whatever the strategy thinks of it
    found: int = 0  # findings that are new with it
    cost: int = 1  # requests that every target answered for it
    lines: int = 0  # of the libraries' own Python, that nobody had reached before
    varies: bool = False  # it may be varied: it is on inputs of its own, which does not breed


class Strategy(Protocol):
    """Proposes and learns. Its state is plain data, so that a campaign can stop and go on."""

    def ask(self) -> Choice: ...
    def tell(self, choice: Choice, offspring: Offspring) -> bool:
        """Learn; True when the mutant joins the pool."""
        ...

    def state(self) -> dict[str, Any]: ...


@dataclass
class Tally:
    """How often a rule was used, and how often its mutant was worth keeping."""

    used: int = 0
    succeeded: int = 0

    @property
    def ratio(self) -> float:
        return self.succeeded / self.used if self.used else 0.0


@dataclass
class Experience:
    """What a strategy knows. It is saved and restored as a whole."""

    members: Members
    tallies: dict[str, Tally]
    groups: dict[str, str]  # whose each rule is: lemon's, audee's, ...
    rng: np.random.Generator
    last: str | None = None
    arms: dict[str, list[int]] = field(default_factory=dict)  # strategy → requests, new findings
    misses: dict[str, int] = field(default_factory=dict)  # strategy → choices in vain, in a row
    lined: dict[str, int] = field(default_factory=dict)  # strategy → mutants with new lines
    varied: list[list[int]] = field(default_factory=list)  # mutants beside the pool, tries left
    refilled: list[int] = field(default_factory=list)  # such mutants, once for each try
    asked: dict[str, int] = field(default_factory=dict)  # rule → how often it was chosen
    yields: dict[str, list[int]] = field(default_factory=dict)  # rule → mutants, with something new

    def rules_of(self, group: str) -> list[str]:
        return [name for name in self.tallies if self.groups[name] == group]

    @staticmethod
    def new(seeds: Mapping[int, float], rules: Mapping[str, str], seed: int) -> Experience:
        """For the initial models, given with their ACC, and the rules, given with their group."""
        members = Members([Member(number, acc) for number, acc in seeds.items()])
        rng = np.random.default_rng([seed, 0x5EA6C8])
        tallies = {rule: Tally() for rule in sorted(rules)}
        return Experience(members, tallies, dict(rules), rng)

    def count(self, choice: Choice, offspring: Offspring) -> None:
        """Whether a mutant showed something new."""
        row = self.yields.setdefault(choice.rule, [0, 0])
        row[0] += 1
        row[1] += offspring.found > 0

    def learn(self, choice: Choice, offspring: Offspring) -> bool:
        """Count a choice that gave a mutant; True when the mutant amplifies (Algorithm 1).

        Nobody can say that of one whose parent left the pool meanwhile.
        """
        place = self.members.place_of(choice.parent)
        amplified = False
        if place is not None:
            self.members.chosen(place)
            acc = self.members[place].acc
            amplified = offspring.acc is not None and offspring.acc >= acc
        tally = self.tallies[choice.rule]
        tally.used += 1
        tally.succeeded += amplified
        self.last = choice.rule
        return amplified

    def join(self, offspring: Offspring) -> bool:
        """Take a mutant into the pool, if it may breed."""
        if offspring.child is None or offspring.acc is None or not offspring.breeds:
            return False
        self.members.join(Member(offspring.child, offspring.acc))
        return True

    def state(self) -> dict[str, Any]:
        return {
            "members": self.members.state(),
            "seeds": self.members.seeds,
            "tallies": {name: [t.used, t.succeeded] for name, t in self.tallies.items()},
            "groups": self.groups,
            "rng": self.rng.bit_generator.state,
            "last": self.last,
            "arms": self.arms,
            "misses": self.misses,
            "lined": self.lined,
            "varied": self.varied,
            "refilled": self.refilled,
            "asked": self.asked,
            "yields": self.yields,
        }

    @staticmethod
    def restored(state: Mapping[str, Any]) -> Experience:
        rng = np.random.default_rng()
        rng.bit_generator.state = state["rng"]
        return Experience(
            Members.restored(state["members"], state["seeds"]),
            {name: Tally(*row) for name, row in state["tallies"].items()},
            dict(state["groups"]),
            rng,
            state["last"],
            {name: list(row) for name, row in state["arms"].items()},
            dict(state["misses"]),
            dict(state.get("lined", {})),
            [list(row) for row in state.get("varied", [])],
            list(state.get("refilled", [])),
            dict(state.get("asked", {})),
            {name: list(row) for name, row in state.get("yields", {}).items()},
        )
