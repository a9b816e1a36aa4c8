"""Free graphs in bulk: drawn, run on every target, compared cheaply; what parts them is kept.

Graphs travel in packs, so that what a message costs is shared by many. Every target works through
the packs at its own pace, while the next ones are drawn by a process of its own.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from outvote.core.arrays import Array
from outvote.core.batch import (
    DrawCases,
    GraphAnswer,
    GraphCase,
    RunGraphs,
    answers_in,
    cases_in,
    packed_cases,
)
from outvote.core.errors import ProtocolError, UsageError
from outvote.core.target import Outcome
from outvote.judge.partings import is_parted
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled

PACK = 64  # graphs in a message
_AHEAD = 3  # packs that are under way
_FAR = 1 << 40  # beyond every number that a campaign reaches


@dataclass(frozen=True)
class PartedGraph:
    """A graph on which targets are not of one mind, and what each made of it."""

    number: int
    case: GraphCase
    answers: Mapping[str, GraphAnswer]


@dataclass
class SievedPack:
    """What came of one pack."""

    first: int
    cases: Array  # packed
    tested: int
    refused: int  # draws that did not work out
    parted: list[PartedGraph] = field(default_factory=list)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)  # by target
    inside: dict[str, float] = field(default_factory=dict)  # seconds inside each target
    compared: float = 0.0  # seconds
    valid: int = 0  # graphs that some target could run


class GraphSieve:
    """Sifts graphs on some targets. Use as a context manager: it holds threads.

    Targets that are `sampled` get one of so many graphs alone.
    """

    def __init__(
        self,
        pool: Pool,
        names: Sequence[str],
        reader: str,
        wanted: DrawCases,
        sampled: Mapping[str, int] | None = None,
    ) -> None:
        self._pool = pool
        self._wanted = wanted
        self._sampled = sampled or {}
        self._drawer = _Lane.of(pool, reader, "draws graphs")
        self._lanes = {name: [_Lane.of(pool, name, "sifts")] for name in names}

    def __enter__(self) -> GraphSieve:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        lanes = [lane for some in self._lanes.values() for lane in some]
        for lane in (self._drawer, *lanes):
            lane.thread.shutdown(wait=True, cancel_futures=True)

    def packs(self, first: int = 0) -> Iterator[SievedPack]:
        """One pack after the other, from a number on, without end."""
        coming: deque[_Coming] = deque()
        widened = False
        for start in itertools.count(first, self._wanted.count):
            coming.append(self._started(start))
            if len(coming) > _AHEAD:
                pack = self._finished(coming.popleft())
                if not widened:
                    self._widen(pack.inside)
                    widened = True
                yield pack

    def _started(self, first: int) -> _Coming:
        drawn = self._drawer.thread.submit(self._draw, first)
        answers = {}
        for name, lanes in self._lanes.items():
            lane = lanes[(first // self._wanted.count) % len(lanes)]
            every = self._sampled.get(name, 1)
            turn = first // self._wanted.count  # another place in each pack
            places = [n for n in range(self._wanted.count) if (first + n + turn) % every == 0]
            answers[name] = lane.thread.submit(self._asked, lane.name, drawn, places)
        return _Coming(first, drawn, answers)

    def _widen(self, inside: Mapping[str, float]) -> None:
        """A target that takes longer than all others together gets a worker per place at work."""
        for name, seconds in inside.items():
            if seconds > sum(inside.values()) / 2 and len(inside) > 1:
                for number in range(2, self._pool.jobs + 1):
                    self._lanes[name].append(_Lane.of(self._pool, name, f"sifts too, {number}"))

    def _draw(self, first: int) -> tuple[Array, int]:
        return self._drawn(replace(self._wanted, first=first))

    def _drawn(self, wanted: DrawCases) -> tuple[Array, int]:
        """Packed cases; a number whose draw kills the worker gives way to one far off."""
        run = ask_settled(self._pool, self._drawer.name, wanted)
        if run.ok:
            return run.reply.cases, run.reply.refused
        if not run.outcome.is_death or wanted.first >= _FAR:
            raise UsageError(f"graphs could not be drawn: {run.message}")
        if wanted.count == 1:
            return self._drawn(replace(wanted, first=_FAR + wanted.first))
        half = wanted.count // 2
        parts = [
            self._drawn(replace(wanted, count=half)),
            self._drawn(replace(wanted, first=wanted.first + half, count=wanted.count - half)),
        ]
        return np.concatenate([cases for cases, _ in parts]), sum(vain for _, vain in parts)

    def _asked(
        self, name: str, drawn: Future[tuple[Array, int]], places: Sequence[int]
    ) -> dict[int, GraphAnswer]:
        packed, _ = drawn.result()
        if not places:
            return {}
        if len(places) < self._wanted.count:
            cases = cases_in(packed)
            packed = packed_cases([cases[place] for place in places])
        return dict(zip(places, answers_of(self._pool, name, packed, len(places)), strict=True))

    def _finished(self, coming: _Coming) -> SievedPack:
        packed, refused = coming.drawn.result()
        answers = {name: future.result() for name, future in coming.answers.items()}
        began = time.perf_counter()
        count = self._wanted.count
        pack = SievedPack(coming.first, packed, count, refused)
        cases: list[GraphCase] = []
        for place in range(count):
            given = {name: found[place] for name, found in answers.items() if place in found}
            pack.valid += any(answer.outcome is Outcome.OK for answer in given.values())
            if is_parted(given):
                cases = cases or cases_in(packed)
                pack.parted.append(PartedGraph(coming.first + place, cases[place], given))
        for name, found in answers.items():
            pack.outcomes[name] = Counter(answer.outcome.value for answer in found.values())
            pack.inside[name] = sum(answer.seconds for answer in found.values())
        pack.compared = time.perf_counter() - began
        return pack


@dataclass(frozen=True)
class _Lane:
    """A worker of the sieve's own, and the thread that waits for it."""

    name: str
    thread: ThreadPoolExecutor

    @staticmethod
    def of(pool: Pool, target: str, task: str) -> _Lane:
        name = f"{target} ({task})"
        if name not in pool.targets:
            pool.add(replace(pool.targets[target], name=name))
        return _Lane(name, ThreadPoolExecutor(1))


@dataclass(frozen=True)
class _Coming:
    first: int
    drawn: Future[tuple[Array, int]]
    answers: Mapping[str, Future[dict[int, GraphAnswer]]]


def answers_of(pool: Pool, name: str, packed: Array, count: int) -> list[GraphAnswer]:
    """What one target makes of packed cases; whose worker dies is asked on without the case."""
    run = pool.ask(name, RunGraphs(cases=packed, steps=count))
    if run.ok:
        try:
            return answers_in(run.reply.answers, count)
        except ProtocolError as error:
            run = replace(run, outcome=Outcome.GARBAGE, message=str(error))
    if count == 1:
        return [GraphAnswer(run.outcome, message=run.message)]
    cases = cases_in(packed)
    place = int(run.layer) if run.layer and run.layer.isdigit() else count // 2
    parts = (cases[:place], cases[place : place + 1], cases[place + 1 :])
    return [
        answer
        for part in parts
        if part
        for answer in answers_of(pool, name, packed_cases(part), len(part))
    ]
