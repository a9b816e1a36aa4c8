"""The rules, found by their folder: each file in `rules` is one, named like the paper names it."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from outvote.core.dialect import dialect
from outvote.core.plugins import modules_in
from outvote.mutate import rules
from outvote.mutate.subject import Subject
from outvote.mutate.tools import Tools


class Rule(Protocol):
    """What a file in `rules` offers."""

    NAME: str  # that users give, and reports show
    GROUP: str  # whose it is; a strategy says which groups it uses
    TITLE: str  # what it does, in a few words: docs/fuzz.md has them
    # OWN_TENSORS = True: it draws what its models read, and leaves the seed alone; optional
    # DEALS = True: it is told which of its mutants one is (`dealt.py`); optional
    # NEEDS: str, the part of a dialect without which it is not offered; optional

    def sites(self, subject: Subject, tools: Tools) -> Sequence[Any]:
        """Where the rule applies; empty where it does not."""
        ...

    def apply(self, subject: Subject, site: Any, tools: Tools, rng: np.random.Generator) -> Subject:
        """A mutant. May raise `Impossible` when nothing it draws fits the site."""
        ...


def all_rules(spoken: str) -> dict[str, Rule]:
    """The rules for models of that dialect: those that need none, and its own."""
    wing = dialect(spoken)
    neutral = {
        name: rule
        for name, rule in rules_in(rules).items()
        if wing.has(getattr(rule, "NEEDS", "layers"))
    }
    return {**neutral, **(wing.mutation.mutation_rules() if wing.has("mutate") else {})}


def brings_tensors(rule: Rule) -> bool:
    """Whether a seed is nothing but a place to begin."""
    return getattr(rule, "OWN_TENSORS", False)


def deals(rule: Rule) -> bool:
    """Whether the seeds of its mutants count them."""
    return getattr(rule, "DEALS", False)


def rules_in(folder: ModuleType) -> dict[str, Rule]:
    """Every module of a folder is a rule."""
    return {module.NAME: module for module in modules_in(folder.__name__)}


def mutate(rule: Rule, subject: Subject, tools: Tools, seed: Sequence[int]) -> Subject | None:
    """Apply a rule at a random site; None where it cannot be applied. Same seed, same mutant."""

    rng = np.random.default_rng(list(seed))
    sites = rule.sites(subject, tools)
    if not sites:
        return None
    try:
        mutant = rule.apply(subject, sites[int(rng.integers(len(sites)))], tools, rng)
    except Impossible:
        return None
    # Exchanging equal neurons, or negating zeros, changes nothing: that is no mutant.
    return None if mutant.model == subject.model else mutant


class Impossible(Exception):  # noqa: N818 - no error: this draw did not work out
    """Nothing that was drawn fits here."""
