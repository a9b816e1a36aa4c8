"""All crews of a campaign on a cluster: who is there, what each does, and who takes over.

Whoever dies, the orders that it had are given to another crew; what it would have answered is never
heard. So the campaign is told of every mutant once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from outvote.campaign.crews import Brood, Deadly
from outvote.campaign.job import FuzzJob
from outvote.campaign.orders import (
    Begin,
    Confirm,
    FindDrifts,
    Look,
    LookAt,
    OfBirths,
    Order,
    Sift,
    TryOut,
)
from outvote.campaign.report import Opening, Standing, ToldFinding
from outvote.core.errors import UsageError
from outvote.core.files import write_atomically
from outvote.fleet.address import Address
from outvote.fleet.host import Arrival, CrewHost, OrderDone, Shipment
from outvote.fleet.needs import Needs
from outvote.store.rows import Birth
from outvote.store.store import Sample

_LOOK = 1.0  # seconds between two looks at who is there
_NOTE = 0.5  # seconds between two notes of what crews do
_COUNT = 5.0  # seconds between two counts of a cluster's nodes
_PLACING = 10.0  # seconds that Ray may take to place a crew, before somebody is told
_MOST_DEATHS = 5  # of crews with the same order, before it is called deadly
_MOST_FAILURES = 3  # of crews that never were ready, before any was
_LONGEST = 30.0  # seconds between two tries to have another crew


@dataclass
class Task:
    """A brood, and the order that it waits for."""

    brood: Brood
    order: Order
    deaths: int = 0


@dataclass(eq=False)
class RemoteCrew:
    """One crew, as the driver sees it."""

    number: int
    actor: Any
    placed: Any  # what Ray says when it has a node for it; None: it has said so
    ref: Any  # of what it is doing; None while it is free
    since: float
    node: str = ""
    is_ready: bool = False
    task: Task | None = None
    tested: int = 0
    standing: Standing = field(default_factory=Standing)
    found: set[str] = field(default_factory=set)  # fingerprints

    def learn(self, order: Order, answer: Any) -> None:
        """Count what it has run and found."""
        if isinstance(order, Sift):
            self.tested += answer.tested
        if isinstance(order, Begin | TryOut | Look | LookAt):
            reports = answer.initial if isinstance(order, Begin) else answer
            self.tested += len(reports) * isinstance(order, TryOut)
            told = [told for report in reports if report is not None for told in report.findings]
            self.found |= {finding.fingerprint for finding in told}

    @property
    def told(self) -> dict[str, Any]:
        """For those who watch."""
        order = self.task.order if self.task else None
        if not self.is_ready:
            doing = "starting" if self.placed is None else "placing"
        else:
            doing = "waiting" if order is None else order.doing
        births: Sequence[Birth] = order.births if isinstance(order, OfBirths) else ()
        return {
            "crew": self.number,
            "node": self.node,
            "doing": doing,
            "numbers": [birth.number for birth in births],
            "since": self.since,
            "tested": self.tested,
        }


Note = Callable[[list[dict[str, Any]]], None]


class RayCrews:
    """The crews of a campaign, while Ray is there."""

    width = None

    def __init__(
        self,
        ray: Any,
        address: Address,
        needs: Needs,
        job: FuzzJob,
        links: tuple[str, ...],
        out: Path,
        note: Note,
        say: Callable[[str], None],
    ) -> None:
        self._ray, self._address, self._needs = ray, address, needs
        self._out, self._note, self._say = out, note, say
        self._has_said = False
        self._host = ray.remote(CrewHost).options(
            scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0, **needs.options
        )
        self._shipment = ray.put(Shipment.of(job, links, ray.put))
        self._members: list[RemoteCrew] = []
        self._orphans: deque[Task] = deque()
        self._gone = Standing()  # what members came to that are no more
        self._versions: Any = None  # of all libraries, as the first crew has them
        self._known: set[str] = set()
        self._number = 0
        self._failures = 0  # crews that died before they were ready, one after the other
        self._not_before = float("-inf")  # seconds of the clock: until then none is tried
        self._refused = 0  # crews that are not like the first
        self._counted, self._room = float("-inf"), 0
        self._noted = float("-inf")
        self._sampler: RemoteCrew | None = None

    # What a campaign asks

    @property
    def side_by_side(self) -> int:
        return max(1, sum(member.is_ready for member in self._members))

    def open(self, begun: bool, known: Collection[str]) -> Opening:
        self._known = set(known)
        opened: list[Opening] = []

        def brood() -> Brood:
            opened.append((yield Begin(begun)))

        waiting: list[Brood] = [brood()]
        while self.finish_one(lambda: waiting.pop() if waiting else None):
            pass
        return opened[0]

    def finish_one(self, more: Callable[[], Brood | None]) -> bool:
        while True:
            self._enlist()
            has_more = self._feed(more)
            busy = self._orphans or any(member.task for member in self._members)
            if not has_more and not busy:
                return False
            if self._wait():
                return True

    def drifts(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        """By the crew that took them: another machine has another pace."""
        if self._sampler not in self._members:
            return ()
        return self._answers({self._sampler: FindDrifts(samples)})

    def growths(self, samples: Sequence[Sample]) -> Sequence[ToldFinding]:
        """Crews are busy when the user stops: the next sitting says it."""
        return ()

    @property
    def at_hand(self) -> Collection[str]:
        return {name for member in self._members for name in member.found}

    def confirm(self, times: int, seconds: float | None) -> Iterable[ToldFinding]:
        """Every finding by a crew that has it."""
        shares: dict[RemoteCrew, set[str]] = {}
        for fingerprint in sorted(self.at_hand):
            finder = next(member for member in self._members if fingerprint in member.found)
            shares.setdefault(finder, set()).add(fingerprint)
        orders = {m: Confirm(times, own, seconds) for m, own in shares.items()}
        return self._answers(orders)

    @property
    def standing(self) -> Standing:
        total = self._gone
        for member in self._members:
            total += member.standing
        # Crews work side by side: seconds of the campaign, not of all of them.
        crews, sitting = max(1, len(self._members)), total.sitting
        making, looking = sitting.making / crews, sitting.looking / crews
        return replace(total, sitting=replace(sitting, making=making, looking=looking))

    def close(self) -> None:
        for member in self._members:
            self._kill(member)
        self._members = []
        self._note([])

    # Who is there

    def _enlist(self) -> None:
        """As many crews as there is room for; Ray places them as soon as it can."""
        if time.monotonic() < self._not_before:
            return
        for _ in range(self._wanted() - self._refused - len(self._members)):
            self._number += 1
            actor = self._host.remote()
            placed = actor.__ray_ready__.remote()
            ref = actor.open.remote(self._shipment, self._known)
            self._members.append(RemoteCrew(self._number, actor, placed, ref, time.time()))

    def _wanted(self) -> int:
        if self._address.crews is not None:
            return self._address.crews
        if time.monotonic() - self._counted > _COUNT:
            self._counted = time.monotonic()
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            self._room = sum(map(self._needs.fit_into, nodes))
            if not self._room and self._versions is None:
                raise UsageError(
                    f"no node of the cluster has room for a crew ({self._needs.told}); "
                    "--jobs and --memory say what one needs"
                )
        return self._room

    def _arrived(self, member: RemoteCrew, arrival: Arrival) -> None:
        member.is_ready, member.node = True, arrival.node
        self._failures = 0
        self._versions = self._versions or arrival.versions
        if arrival.versions != self._versions:  # its votes would be those of other libraries
            self._refuse(member)

    def _refuse(self, member: RemoteCrew) -> None:
        """A crew that is not like the first: there is one less."""
        self._refused += 1
        self._dismiss(member)

    def _bury(self, member: RemoteCrew, reason: str) -> None:
        """A crew that died: another one takes what it had."""
        if not member.is_ready:
            self._failures += 1
            self._not_before = time.monotonic() + min(_LONGEST, 2.0**self._failures / 2)
            if self._failures >= _MOST_FAILURES and self._versions is None:
                raise UsageError(f"crews died before they were ready: {reason}")
        task = member.task
        self._dismiss(member)
        if task is None:
            return
        task.deaths += 1
        if task.deaths < _MOST_DEATHS:
            self._orphans.append(task)
            return
        told = f"{task.deaths} crews died of it, the last one so: {reason}"
        if self._advance(task, lambda: task.brood.throw(Deadly(told))):
            self._orphans.append(task)

    def _dismiss(self, member: RemoteCrew) -> None:
        self._kill(member)
        self._members.remove(member)
        self._gone += member.standing

    def _kill(self, member: RemoteCrew) -> None:
        with suppress(Exception):  # it is dead, or Ray is
            self._ray.kill(member.actor)

    # What each does

    def _feed(self, more: Callable[[], Brood | None]) -> bool:
        """Something to do for everyone who is free; False when there is nothing more."""
        for member in [m for m in self._members if m.is_ready and m.task is None]:
            if self._orphans:
                self._give(member, self._orphans.popleft())
                continue
            brood = more()
            if brood is None:
                return False
            self._give(member, Task(brood, next(brood)))
        return True

    def _give(self, member: RemoteCrew, task: Task) -> None:
        member.task, member.since = task, time.time()
        member.ref = member.actor.do.remote(task.order)

    def _wait(self) -> bool:
        """Until a crew has something to say; True when a brood has ended."""
        busy = {member.ref: member for member in self._members if member.ref is not None}
        if not busy:  # all nodes have left: others may join
            time.sleep(_LOOK)
            return False
        ready, _ = self._ray.wait(list(busy), num_returns=1, timeout=_LOOK)
        if ready:
            ready, _ = self._ray.wait(list(busy), num_returns=len(busy), timeout=0)
        ended = [self._heard(busy[ref]) for ref in ready]
        if time.monotonic() - self._noted > _NOTE:
            self._noted = time.monotonic()
            self._see_placed()
            self._note([member.told for member in self._members])
        return any(ended)

    def _see_placed(self) -> None:
        """Who has a node; once, that others have waited for one so long that a user wonders."""
        waiting = {member.placed: member for member in self._members if member.placed is not None}
        if waiting:
            there, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
            for ref in there:
                waiting.pop(ref).placed = None
        oldest = min((member.since for member in waiting.values()), default=time.time())
        if not self._has_said and time.time() - oldest >= _PLACING:
            self._has_said = True
            self._say(
                f"{len(waiting)} of {len(self._members)} crews wait for room on the cluster: "
                f"each needs {self._needs.told} free on one node"
            )

    def _heard(self, member: RemoteCrew) -> bool:
        """Take what a crew answers; True when its brood has ended with it."""
        task, ref, member.ref = member.task, member.ref, None
        try:
            found, reason = self._got(ref)
        except UsageError:
            if member.is_ready or self._versions is None:
                raise
            self._refuse(member)
            return False
        if found is None:
            self._bury(member, reason)
            return False
        if isinstance(found, Arrival):
            self._arrived(member, found)
            return False
        assert task is not None
        self._take(member, found)
        member.task = None
        if isinstance(task.order, Begin):
            self._sampler = member
        member.learn(task.order, found.answer)
        if not self._advance(task, lambda: task.brood.send(found.answer)):
            return True
        self._give(member, task)
        return False

    def _advance(self, task: Task, step: Callable[[], Order]) -> bool:
        """A brood's next order; False when it has ended."""
        try:
            task.order, task.deaths = step(), 0
        except StopIteration:
            return False
        return True

    def _got(self, ref: Any) -> tuple[Any, str]:
        """What a crew answers; or None, and how it died. An error of ours is raised here."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref), ""
        except errors.RayTaskError as error:
            if isinstance(error.cause, UsageError):
                raise UsageError(str(error.cause)) from error
            raise
        except errors.RayError as error:
            return None, " ".join(str(error).split())[:300]

    def _take(self, member: RemoteCrew, done: OrderDone) -> None:
        member.standing = done.standing
        self._write(done.files)

    def _write(self, files: Any) -> None:
        for name, data in files.items():
            write_atomically(self._out / name, partial(_written, data))

    def _answers(self, orders: Mapping[RemoteCrew, Order]) -> list[ToldFinding]:
        """What several crews answer, side by side; of those that die, nothing."""
        refs = {member: member.actor.do.remote(order) for member, order in orders.items()}
        told: list[ToldFinding] = []
        for member, ref in refs.items():
            found, _ = self._got(ref)
            if found is not None:
                self._take(member, found)
                told += found.answer
        return told


def _written(data: bytes, file: BinaryIO) -> None:
    file.write(data)
