"""Which of the differences that a sieve lets through are looked into first: those like no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from outvote.core.sifted import CauseKey, PartedCase, SuspectCase

_MOST_LOOKS = 3  # at differences of one family that brought nothing new


@dataclass(frozen=True)
class Waiting:
    """A case to be looked into, and the number of the graph that it is a part of."""

    number: int
    case: SuspectCase


@dataclass
class Novelty:
    """Differences by their keys. One of each key is kept; the others are counted."""

    met: Counter[CauseKey] = field(default_factory=Counter)
    _waiting: dict[CauseKey, Waiting] = field(default_factory=dict)
    _led_to: dict[CauseKey, frozenset[str]] = field(default_factory=dict)  # fingerprints
    _looks: Counter[str] = field(default_factory=Counter)  # at each family
    _vain: Counter[str] = field(default_factory=Counter)  # of them, without a new finding

    def add(self, suspect: PartedCase) -> frozenset[str]:
        """Take a suspect in; the findings that it shows again, by what it looks like."""
        keys = [case.key for case in suspect.cases] or [suspect.key]
        self.met.update(keys)
        for case in suspect.cases:
            if case.key not in self._led_to:
                self._waiting.setdefault(case.key, Waiting(suspect.number, case))
        return frozenset().union(*(self._led_to.get(key, frozenset()) for key in keys))

    def next(self) -> Waiting | None:
        """Of the family that was looked at least; None where nothing is worth it."""
        worth = [key for key in self._waiting if self._vain[key.family] < _MOST_LOOKS]
        if not worth:
            return None
        key = min(worth, key=lambda key: (self._looks[key.family], -self.met[key]))
        return self._waiting.pop(key)

    def looked(self, one: Waiting, fingerprints: Iterable[str], new: bool) -> None:
        """What came of a look; the same key is not looked at again."""
        key = one.case.key
        self._led_to[key] = frozenset(fingerprints)
        self._looks[key.family] += 1
        self._vain[key.family] = 0 if new else self._vain[key.family] + 1

    @property
    def waiting(self) -> int:
        """Keys that nobody has looked at."""
        return len(self._waiting)
