"""Who mutants descend from, as the store has it: a crew may never have heard of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from outvote.store.rows import Birth
from outvote.store.store import Store

KEPT = 2048  # births in memory: those of few generations ago are asked for again and again


class Ancestry:
    """Reads births; those that were asked for last are at hand."""

    def __init__(self, store: Store) -> None:
        self._birth = lru_cache(KEPT)(store.birth)

    def of(self, births: Iterable[Birth]) -> tuple[Birth, ...]:
        """How all ancestors came to be that are no seeds."""
        found: dict[int, Birth] = {}
        for birth in births:
            number = birth.parent
            while number not in found and (parent := self._birth(number)) is not None:
                found[number] = parent
                number = parent.parent
        return tuple(found.values())
