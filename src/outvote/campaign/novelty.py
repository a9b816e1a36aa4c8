"""Which of the differences that a campaign meets are looked into first: those like no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from outvote.core.sifted import CauseKey

MOST_LOOKS = 3  # at differences of one family that brought nothing new
TURNS = {"values": 5, "failure": 5, "nan": 2}  # of so many looks each symptom has, while they last
OFTEN = 8  # every so many looks one goes to what was met most, whatever else was looked at
_MET_OFTEN = 3
_FAINT = 2  # what is faint waits as if it had been looked at so often


class Keyed(Protocol):
    """A case, and what its difference looks like."""

    @property
    def key(self) -> CauseKey: ...


C = TypeVar("C", bound=Keyed)


@dataclass(frozen=True)
class Waiting(Generic[C]):
    """A case to be looked into, and the number of what was tried."""

    number: int
    case: C


@dataclass
class Novelty(Generic[C]):
    """Differences by their keys. One of each key is kept; the others are counted.

    Families that brought nothing new in so many looks wait for good (`most_vain`), or where that is
    None behind all others.
    """

    most_vain: int | None = MOST_LOOKS
    met: Counter[CauseKey] = field(default_factory=Counter)
    _waiting: dict[CauseKey, Waiting[C]] = field(default_factory=dict)
    _led_to: dict[CauseKey, frozenset[str]] = field(default_factory=dict)  # fingerprints
    _for_good: set[CauseKey] = field(default_factory=set)  # what waits so: no case of it is kept
    _chosen: int = 0  # how often something was
    _looks: Counter[str] = field(default_factory=Counter)  # at each part of a key
    _looks_for: Counter[str] = field(default_factory=Counter)  # at each symptom
    _looks_about: Counter[str] = field(default_factory=Counter)  # at what families are about
    _vain: Counter[str] = field(default_factory=Counter)  # of them, without a new finding

    def recall(self, led_to: Mapping[CauseKey, frozenset[str]]) -> None:
        """What an earlier sitting has looked into is not looked into again."""
        self._led_to.update(led_to)
        self.met.update(led_to.keys())
        for key in led_to:
            self._count(key)

    @property
    def led_to(self) -> Mapping[CauseKey, frozenset[str]]:
        """What was looked into, with the findings that it shows."""
        return self._led_to

    def knows(self, key: CauseKey) -> bool:
        """Whether what looks like that was looked into, be it in vain."""
        return key in self._led_to

    def add(self, number: int, whole: CauseKey, cases: Sequence[C]) -> frozenset[str]:
        """Take in what parts targets, as a whole and by its parts, if it was cut.

        Gives the findings that it shows again, by what it looks like.
        """
        keys = [case.key for case in cases] or [whole]
        self.met.update(keys)
        for case in cases:
            if case.key in self._led_to:
                continue
            if self._is_vain(case.key):
                self._for_good.add(case.key)
            else:
                self._for_good.discard(case.key)
                self._waiting.setdefault(case.key, Waiting(number, case))
        return frozenset().union(*(self._led_to.get(key, frozenset()) for key in keys))

    def next(self) -> Waiting[C] | None:
        """What is like nothing that was looked at, and now and then what was met most.

        None where nothing is worth it.
        """
        if not self._waiting:
            return None
        self._chosen += 1
        often = self._met_most() if self._chosen % OFTEN == 0 else None
        return self._waiting.pop(often or min(self._waiting, key=self._rank))

    def _met_most(self) -> CauseKey | None:
        """Of what is not faint; None where nothing was met often."""
        met = {key: self.met[key] for key in self._waiting if not key.is_faint}
        most = max(met, key=met.__getitem__, default=None)
        return most if most is not None and met[most] >= _MET_OFTEN else None

    def pick(self, number: int) -> Waiting[C] | None:
        """What waits under that number."""
        found = [key for key, one in self._waiting.items() if one.number == number]
        return self._waiting.pop(found[0]) if found else None

    def _is_vain(self, key: CauseKey) -> bool:
        """Whether its family has brought nothing new in so many looks."""
        return self.most_vain is not None and self._vain[key.family] >= self.most_vain

    def _rank(self, key: CauseKey) -> tuple[float, ...]:
        """What has a part that was looked at least comes first; what is faint stands behind.

        Symptoms take turns: there are more ways to fail than to be wrong in silence. Then comes
        what shows in few, and what is about the kinds of layers that were looked at least.
        """
        vain = self._vain[key.family] if self.most_vain is None else 0
        looks = min(self._looks[part] for part in key.parts) + _FAINT * key.is_faint
        turn = self._looks_for[key.symptom] / TURNS[key.symptom]
        about = self._looks_about[key.subject]
        return (vain, looks, turn, len(key.parts), about, -self.met[key])

    def _count(self, key: CauseKey) -> None:
        self._looks.update(key.parts)
        self._looks_for[key.symptom] += 1
        self._looks_about[key.subject] += bool(key.subject)

    def looked(self, one: Waiting[C], fingerprints: Iterable[str], new: bool) -> None:
        """What came of a look; the same key is not looked at again."""
        key = one.case.key
        self._led_to[key] = frozenset(fingerprints)
        self._for_good.discard(key)
        self._count(key)
        self._vain[key.family] = 0 if new else self._vain[key.family] + 1
        if self._is_vain(key):
            left = [other for other in self._waiting if other.family == key.family]
            for other in left:
                del self._waiting[other]
            self._for_good.update(left)

    @property
    def waiting(self) -> int:
        """Keys that nobody has looked at."""
        return len(self._waiting) + len(self._for_good)

    @property
    def cases(self) -> list[Waiting[C]]:
        """What waits, the next one first."""
        return [self._waiting[key] for key in sorted(self._waiting, key=self._rank)]
