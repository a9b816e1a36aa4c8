"""What every strategy has in common: the pool of models to breed from, and its ask and tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Choice:
    """A model to breed from, by its number, and the rule to use on it."""

    parent: int
    rule: str
    by: str = ""  # the strategy that chose, where several do


# AUDEE: other parameters, illegal ones, and the search over inputs, weights, or both.
AUDEE_RULES = ("NET", "ILL", "IN", "WT", "IN-WT")
_GROUPS = {**dict.fromkeys(AUDEE_RULES, "audee"), "BR": "layers"}


def group_of(rule: str) -> str:
    """Whose a rule is: audee's, ours (layers), and all others LEMON's."""
    return _GROUPS.get(rule, "lemon")


@dataclass(frozen=True)
class Outcome:
    """What came of a choice. `child` is None where the rule did not apply or nothing ran.

    `acc` is LEMON's ACC: the inconsistencies of the mutant, summed over inputs and pairs.
    """

    child: int | None
    acc: float | None = None
    breeds: bool = True  # False: not wanted in the pool, whatever the strategy thinks of it
    found: int = 0  # findings that are new with it
    cost: int = 1  # requests that every target answered for it


class Strategy(Protocol):
    """Proposes and learns. Its state is plain data, so that a campaign can stop and go on."""

    def ask(self) -> Choice: ...
    def tell(self, choice: Choice, outcome: Outcome) -> bool:
        """Learn from a mutant; True when it joined the pool."""
        ...

    def state(self) -> dict[str, Any]: ...
    def members(self) -> Sequence[int]: ...


@dataclass
class Member:
    """A model in the pool."""

    number: int
    acc: float
    chosen: int = 0


@dataclass
class Tally:
    """How often a rule was used, and how often its mutant was worth keeping."""

    used: int = 0
    succeeded: int = 0

    @property
    def ratio(self) -> float:
        return self.succeeded / self.used if self.used else 0.0


@dataclass
class Memory:
    """What a strategy knows. It is saved and restored as a whole."""

    members: list[Member]
    tallies: dict[str, Tally]
    rng: np.random.Generator
    last: str | None = None
    arms: dict[str, list[int]] = field(default_factory=dict)  # strategy → requests, new findings

    @property
    def lemon_rules(self) -> list[str]:
        return self.rules_of("lemon")

    @property
    def audee_rules(self) -> list[str]:
        return self.rules_of("audee")

    def rules_of(self, group: str) -> list[str]:
        return [name for name in self.tallies if group_of(name) == group]

    @staticmethod
    def new(seeds: Mapping[int, float], rules: Sequence[str], seed: int) -> Memory:
        """For the initial models, given with their ACC."""
        members = [Member(number, acc) for number, acc in seeds.items()]
        rng = np.random.default_rng([seed, 0x5EA6C8])
        return Memory(members, {rule: Tally() for rule in sorted(rules)}, rng)

    def learn(self, choice: Choice, outcome: Outcome) -> bool:
        """Count a choice that gave a mutant; True when the mutant amplifies (Algorithm 1)."""
        parent = next(member for member in self.members if member.number == choice.parent)
        parent.chosen += 1
        amplified = outcome.acc is not None and outcome.acc >= parent.acc
        tally = self.tallies[choice.rule]
        tally.used += 1
        tally.succeeded += amplified
        self.last = choice.rule
        return amplified

    def join(self, outcome: Outcome) -> bool:
        """Take a mutant into the pool, if it may breed."""
        if outcome.child is None or outcome.acc is None or not outcome.breeds:
            return False
        self.members.append(Member(outcome.child, outcome.acc))
        return True

    def state(self) -> dict[str, Any]:
        return {
            "members": [[m.number, m.acc, m.chosen] for m in self.members],
            "tallies": {name: [t.used, t.succeeded] for name, t in self.tallies.items()},
            "rng": self.rng.bit_generator.state,
            "last": self.last,
            "arms": self.arms,
        }

    @staticmethod
    def restored(state: Mapping[str, Any]) -> Memory:
        rng = np.random.default_rng()
        rng.bit_generator.state = state["rng"]
        return Memory(
            [Member(*row) for row in state["members"]],
            {name: Tally(*row) for name, row in state["tallies"].items()},
            rng,
            state["last"],
            {name: list(row) for name, row in state.get("arms", {}).items()},
        )
