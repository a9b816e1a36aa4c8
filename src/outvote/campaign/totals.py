"""What a campaign counts over all its sittings, and the notes of it in the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from outvote.campaign.trial import Answered, Trial
from outvote.mutate.tools import Tools, value_class
from outvote.store import facts
from outvote.store.store import Store

_LOOK = 0.2  # seconds between two looks of a campaign that pauses


@dataclass(frozen=True)
class Sitting:
    """What workers and rules came to since the campaign was taken up, under the store's names."""

    flaky: int  # deaths that did not repeat
    recycled: int  # workers replaced because they had grown
    restarts: Mapping[str, int]
    busy: Mapping[str, float]  # seconds inside each target
    looking: float  # seconds
    looks: int
    refused_draws: int


class Totals:
    """Counts and clocks. A new sitting goes on where the store stands."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._began = time.monotonic()
        self._before = store.fact(facts.SECONDS)
        self._starting = store.fact(facts.STARTING)
        self._earlier = {key: store.fact(facts.ALL[key]) for key in Sitting.__dataclass_fields__}
        self._peaks = Counter(store.fact(facts.PEAKS))
        mutants = [row for row in store.rows() if row.rule is not None]
        sifted = store.fact(facts.SIFTED)
        self.tested = sifted.get("tested", len(mutants))
        valid = sum(row.outcome != "invalid" for row in mutants)
        self.valid = sifted.get("valid", valid)
        self.kinds = Counter(store.fact(facts.KINDS))
        self.values = Counter(store.fact(facts.VALUES))  # kind, parameter and class of its value
        self.accepted = Counter(store.fact(facts.ACCEPTED))  # illegal values that none refused
        self.rounding = store.fact(facts.ROUNDING)
        self.making = store.fact(facts.MAKING)  # seconds
        self.looking_after = store.fact(facts.LOOKING_AFTER)
        self.confirming = store.fact(facts.CONFIRMING)
        self.best = 0.0  # the largest ACC of a mutant over its seed's, in this sitting

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._began

    def rest(self) -> None:
        """Wait for as long as the store says that the campaign pauses: that is no time of its."""
        began = time.monotonic()
        while self._store.fact(facts.PAUSED):
            time.sleep(_LOOK)
        self._began += time.monotonic() - began

    def started(self) -> None:
        """From now on mutants are bred."""
        self._starting += time.monotonic() - self._began

    def count(self, trial: Trial, answered: Answered, of_seed: float, tools: Tools) -> None:
        """One mutant or illegal value; `of_seed` is the ACC of its seed."""
        self.tested += 1
        self.valid += answered.valid
        self.rounding += answered.conclusion.rounding
        if answered.conclusion.accepted:
            self.accepted[answered.conclusion.accepted] += 1
        if not answered.valid:
            return
        self.seen(trial, tools)
        if answered.acc is not None and of_seed > 0:
            self.best = max(self.best, answered.acc / of_seed)

    def seen(self, trial: Trial, tools: Tools) -> None:
        """Kinds and values of layers that were run."""
        for layer in map(trial.subject.model.layer, trial.changed):
            self.kinds[layer.kind] += 1
            for name, value in tools.parameters(layer).items():
                self.values[f"{layer.kind} {name} {value_class(value)}"] += 1

    def note(self, sitting: Sitting, peaks: Mapping[str, int]) -> None:
        """Write everything down, in the transaction that is open."""
        noted = {
            "seconds": self.seconds,
            "starting": self._starting,
            "making": self.making,
            "looking_after": self.looking_after,
            "confirming": self.confirming,
            "kinds": dict(self.kinds),
            "values": dict(self.values),
            "accepted": dict(self.accepted),
            "rounding": self.rounding,
            "peaks": self._peaks | Counter(peaks),  # of each the larger one
            **{key: _sum(self._earlier[key], own) for key, own in asdict(sitting).items()},
        }
        for key, value in noted.items():
            self._store.note(facts.ALL[key], value)


def _sum(one: Any, other: Any) -> Any:
    """Of two numbers, or of two dicts of numbers by their keys."""
    if isinstance(other, dict):
        return {key: one.get(key, 0) + value for key, value in other.items()}
    return one + other
