"""What a campaign counts over all its sittings, and the notes of it in the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from outvote.campaign.report import Report, Sitting, Standing, added
from outvote.store import facts
from outvote.store.store import Store

_LOOK = 0.2  # seconds between two looks of a campaign that pauses


class Totals:
    """Counts and clocks. A new sitting goes on where the store stands."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._began = time.monotonic()
        self._before = store.fact(facts.SECONDS)
        self._starting = store.fact(facts.STARTING)
        self._earlier = {key: store.fact(facts.ALL[key]) for key in Sitting.__dataclass_fields__}
        self._peaks = Counter(store.fact(facts.PEAKS))
        tested, valid = store.tried()
        sifted = store.fact(facts.SIFTED)
        self.tested = sifted.get("tested", tested)
        self.valid = sifted.get("valid", valid)
        self.kinds = Counter(store.fact(facts.KINDS))
        self.values = Counter(store.fact(facts.VALUES))  # kind, parameter and class of its value
        self.accepted = Counter(store.fact(facts.ACCEPTED))  # illegal values that none refused
        self.left_out = set(store.fact(facts.LEFT_OUT))
        self.rounding = store.fact(facts.ROUNDING)
        self.looking_after = store.fact(facts.LOOKING_AFTER)  # seconds
        self.confirming = store.fact(facts.CONFIRMING)
        self.best = 0.0  # the largest ACC of a mutant over its seed's, in this sitting

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._began

    def rest(self) -> None:
        """Wait for as long as the store says that the campaign pauses."""
        with self.aside():
            while self._store.fact(facts.PAUSED):
                time.sleep(_LOOK)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is done meanwhile takes no time of the campaign's."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._began += time.monotonic() - began

    def started(self) -> None:
        """From now on mutants are bred."""
        self._starting += time.monotonic() - self._began

    def count(self, report: Report, of_seed: float) -> None:
        """One mutant or illegal value; `of_seed` is the ACC of its seed."""
        self.tested += 1
        self.valid += report.valid
        self.rounding += report.rounding
        self.left_out |= report.left_out
        if report.accepted:
            self.accepted[report.accepted] += 1
        if not report.valid:
            return
        self.seen(report)
        if report.row.acc is not None and of_seed > 0:
            self.best = max(self.best, report.row.acc / of_seed)

    def seen(self, report: Report) -> None:
        """Kinds and values of layers that were run."""
        self.kinds.update(report.kinds)
        self.values.update(report.values)

    def note(self, standing: Standing) -> None:
        """Write everything down, in the transaction that is open."""
        sitting = asdict(standing.sitting)
        noted = {
            "seconds": self.seconds,
            "starting": self._starting,
            "looking_after": self.looking_after,
            "confirming": self.confirming,
            "kinds": dict(self.kinds),
            "values": dict(self.values),
            "accepted": dict(self.accepted),
            "left_out": sorted(self.left_out),
            "rounding": self.rounding,
            "peaks": self._peaks | Counter(standing.peaks),  # of each the larger one
            **{key: added(self._earlier[key], own) for key, own in sitting.items()},
        }
        for key, value in noted.items():
            self._store.note(facts.ALL[key], value)
