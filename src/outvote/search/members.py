"""The models that a strategy breeds from: some bytes each, and of bounded number."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from outvote.core.arrays import Array

MOST = 1 << 16  # mutants in the pool: from then on the newest takes the place of the oldest
_ROW = np.dtype([("number", "<i8"), ("acc", "<f8"), ("chosen", "<i8")])


@dataclass(frozen=True)
class Member:
    """A model in the pool."""

    number: int
    acc: float
    chosen: int = 0


class Members:
    """The pool: the seeds, which stay, and mutants behind them."""

    def __init__(self, seeds: Sequence[Member]) -> None:
        self.seeds = len(seeds)
        self._joined = 0  # mutants so far, also those that left
        self._rows = np.zeros(self.seeds + MOST, _ROW)  # memory is taken when one is written
        self._odds = np.zeros(len(self._rows))
        for place, seed in enumerate(seeds):
            self._put(place, seed)

    def __len__(self) -> int:
        return self.seeds + min(self._joined, MOST)

    def __getitem__(self, place: int) -> Member:
        return Member(*self._rows[: len(self)][place].item())

    def __iter__(self) -> Iterator[Member]:
        return (self[place] for place in range(len(self)))

    def place_of(self, number: int) -> int | None:
        """Where a model is; None: it has left."""
        (places,) = np.nonzero(self._rows["number"][: len(self)] == number)
        return int(places[0]) if len(places) else None

    @property
    def odds(self) -> Array:
        """Of each to be chosen: 1 / (times chosen + 1), as LEMON has it (equation 4)."""
        return self._odds[: len(self)]

    def join(self, member: Member) -> None:
        self._put(self.seeds + self._joined % MOST, member)
        self._joined += 1

    def chosen(self, place: int) -> None:
        """Once more."""
        before = self[place]
        self._put(place, Member(before.number, before.acc, before.chosen + 1))

    def _put(self, place: int, member: Member) -> None:
        self._rows[place] = astuple(member)
        self._odds[place] = 1 / (member.chosen + 1)

    def state(self) -> dict[str, Any]:
        rows = self._rows[: len(self)].tobytes()
        return {"joined": self._joined, "rows": base64.b64encode(rows).decode()}

    @staticmethod
    def restored(state: Mapping[str, Any] | Sequence[Sequence[Any]], seeds: int) -> Members:
        """An earlier version wrote a list of all rows."""
        if not isinstance(state, Mapping):
            rows = [Member(*row) for row in state]
            members = Members(rows[:seeds])
            for row in rows[seeds:]:
                members.join(row)
            return members
        held = np.frombuffer(base64.b64decode(state["rows"]), _ROW)
        members = Members([Member(*row.item()) for row in held[:seeds]])
        members._joined = state["joined"]
        members._rows[: len(held)] = held
        members._odds[: len(held)] = 1 / (held["chosen"] + 1)
        return members
