"""Who works for a campaign: a crew in this process, or several on a cluster (`outvote/fleet`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from outvote.campaign.crew import Crew, Outing
from outvote.campaign.equipment import equipped
from outvote.campaign.job import FuzzJob
from outvote.campaign.orders import Order, TryOut
from outvote.campaign.report import Opening, Standing, ToldFinding
from outvote.core.events import Event
from outvote.run.pool import Pool
from outvote.search.registry import asks_ahead
from outvote.store.store import Sample

_GENERATIONS = 2  # that one crew has under way
Brood = Generator[Order, Any, None]
"""A generation on its way: it yields orders, is sent what a crew answers, and ends when stored."""


class Deadly(Exception):  # noqa: N818 - no error of ours: crew after crew dies of an order
    """Thrown into a brood: the order that it waits for is not given out again."""


class Crews(Protocol):
    """All crews of a campaign, however many they are."""

    @property
    def width(self) -> int | None:
        """So many mutants are made before the strategy is told which rules do not apply.

        None: a whole generation, because every order is a journey.
        """
        ...

    @property
    def side_by_side(self) -> int:
        """How many of them are at work."""
        ...

    def open(self, begun: bool, known: Collection[str]) -> Opening:
        """What the first crew is that is ready; `known`: findings that the store has."""
        ...

    def finish_one(self, more: Callable[[], Brood | None]) -> bool:
        """Give a brood to everyone who is free, and wait until one has ended; False: all have."""
        ...

    def drifts(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        """Targets that need ever more, measured again by who took the samples."""
        ...

    def growths(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        """What can be said of that when the user has stopped everything."""
        ...

    @property
    def at_hand(self) -> Collection[str]:
        """Findings that some crew can confirm."""
        ...

    def confirm(self, times: int, seconds: float | None) -> Iterable[ToldFinding]:
        """What all crews have found, again in fresh workers; in so many seconds, if there are."""
        ...

    @property
    def standing(self) -> Standing: ...

    def close(self) -> None:
        """Everybody may leave."""
        ...


class OneCrew:
    """The crew in this process: what it is asked it does at once.

    Where the strategy may be asked ahead, it makes the next generation and judges the one before
    while targets run one, so that they always have something to do. An oracle that is asked for may
    open sessions while it judges, and nothing may come between their steps.
    """

    width = 1
    side_by_side = 1

    def __init__(self, job: FuzzJob, pool: Pool, out: Path, tell: Callable[[Event], None]) -> None:
        self._job, self._pool, self._out, self._tell = job, pool, out, tell
        may_go_ahead = asks_ahead(job.strategy) and not job.oracle
        self._most = _GENERATIONS if may_go_ahead else 1
        self._under_way: deque[tuple[Brood, Outing]] = deque()

    def open(self, begun: bool, known: Collection[str]) -> Opening:
        self.crew = Crew(equipped(self._job, self._pool, self._tell), self._out, set(known))
        return self.crew.opening(begun)

    def finish_one(self, more: Callable[[], Brood | None]) -> bool:
        while True:
            while len(self._under_way) < self._most and (fresh := more()) is not None:
                if self._ends(fresh, None):
                    return True
            if not self._under_way:
                return False
            brood, attempt = self._under_way.popleft()
            if self._ends(brood, attempt.reports()):
                return True

    def _ends(self, brood: Brood, answer: Any) -> bool:
        """Do what it orders, until it has ended, or targets are at it."""
        while True:
            try:
                order = brood.send(answer)
            except StopIteration:
                return True
            if isinstance(order, TryOut):
                attempt = self.crew.set_out(order.births, order.ancestors)
                self._under_way.append((brood, attempt))
                return False
            answer = order.by(self.crew)

    def drifts(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        return self.crew.drifts(samples)

    def growths(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        return self.crew.growths(samples)

    @property
    def at_hand(self) -> Collection[str]:
        return self.crew.at_hand

    def confirm(self, times: int, seconds: float | None) -> Iterable[ToldFinding]:
        return self.crew.confirm(times, seconds)

    @property
    def standing(self) -> Standing:
        return self.crew.standing

    def close(self) -> None:
        if "crew" in vars(self):  # it was opened
            self.crew.close()
