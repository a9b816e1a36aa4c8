"""Findings of a campaign in the store: each is told once, and counted when it is met again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from outvote.campaign.report import ToldFinding
from outvote.store.store import Store


@dataclass
class Keeper:
    """Stores findings. Their folders are there already, so that none is named without proof."""

    store: Store
    seconds: Callable[[], float]  # of the campaign, so far
    known: set[str] = field(init=False)  # fingerprints
    last: str = ""  # title of the newest finding

    def __post_init__(self) -> None:
        self.known = {seen.fingerprint for seen in self.store.findings()}

    def keep(self, number: int, found: Iterable[ToldFinding], again: Collection[str] = ()) -> None:
        """What came of one mutant."""
        met = set(again)
        for told in found:
            met.discard(told.fingerprint)  # counted here
            if told.fingerprint in self.known:
                self.store.again(told.fingerprint, number, self.seconds())
                continue
            self.store.found(told.fingerprint, number, self.seconds(), told.data)
            self.known.add(told.fingerprint)
            self.last = told.title
        self.again(number, met)

    def again(self, number: int, fingerprints: Iterable[str]) -> None:
        """Findings that a mutant shows once more."""
        for fingerprint in fingerprints:
            self.store.again(fingerprint, number, self.seconds())

    def met(self, fingerprint: str) -> None:
        """A finding that was seen once more, by what it looks like."""
        self.store.met(fingerprint, self.seconds())

    def retell(self, told: ToldFinding) -> None:
        """A finding that is in the store, with what was learnt of it since."""
        self.store.retold(told.fingerprint, told.data)
