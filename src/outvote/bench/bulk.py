"""Free graphs for campaigns: sifted by the thousand, and what parts targets cut down to its nodes.

A graph that parts targets is run once more with all tensors shown, then each of its nodes alone,
in bulk too. So most differences are known by their operator, attributes and words before anybody
looks into them, and are one node large. Of what looks alike as a whole, a few are cut.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from outvote.bench.sieve import GraphSieve, PartedGraph, SievedPack, answers_of
from outvote.core.arrays import Array
from outvote.core.batch import (
    CutGraphs,
    DrawCases,
    ExposeGraphs,
    GraphAnswer,
    GraphCase,
    cases_in,
    packed_answers,
    packed_cases,
)
from outvote.core.protocol import ModelRead
from outvote.core.sifted import CauseKey, PartedCase, Sifted, SuspectCase
from outvote.core.target import Outcome, Target
from outvote.judge.partings import is_parted, key_of
from outvote.run.pool import Pool
from outvote.run.settle import ask_settled

_MOST_CUT = 3  # graphs that look alike as a whole, and are cut
_LONG = 1.0  # seconds of sifting between two cuts
_SAMPLES = {"loads_slowly": 16, "compiles_slowly": 256}  # so many cases, of which a target gets one


def _every(target: Target) -> int:
    """Of how many cases a target gets one, by what it says that loading costs."""
    return max((every for cost, every in _SAMPLES.items() if cost in target.costs), default=1)


@dataclass
class _Nodes:
    """A graph's nodes, each alone: on which targets part, and what operators there are."""

    parted: list[SuspectCase] = field(default_factory=list)
    operators: set[str] = field(default_factory=set)


@dataclass
class CampaignSieve:
    """Sifts until it is closed; slow targets get a sample, and what the others suspect.

    `jumps` are the operators that jump where their input moves a little: behind rounding, values
    of the whole say nothing.
    """

    pool: Pool
    targets: Sequence[Target]
    reader: str
    wanted: DrawCases
    jumps: frozenset[str]
    read: Callable[[SuspectCase], ModelRead | None]
    _cut: Counter[CauseKey] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        names = [target.name for target in self.targets]
        slow = {t.name: every for t in self.targets if (every := _every(t)) > 1}
        self._slow = slow if len(names) - len(slow) > 1 else {}
        self._quick = [name for name in names if name not in self._slow]
        self._sieve = GraphSieve(self.pool, names, self.reader, self.wanted, self._slow)

    def close(self) -> None:
        self._sieve.close()

    def sifted(self, first: int, end: int) -> Iterator[Sifted]:
        """About a second's graphs at a time, from a number on, and none from the other on."""
        packs: list[SievedPack] = []
        began = time.monotonic()
        for pack in self._sieve.packs(first):
            packs.append(pack)
            is_last = pack.first + pack.tested >= end
            if is_last or time.monotonic() - began >= _LONG:
                yield self._told(packs)
                packs, began = [], time.monotonic()
            if is_last:
                return

    def _told(self, packs: Sequence[SievedPack]) -> Sifted:
        inside: Counter[str] = Counter()
        for pack in packs:
            inside.update(pack.inside)
        return Sifted(
            packs[0].first,
            sum(pack.tested for pack in packs),
            sum(pack.valid for pack in packs),
            self._suspects([one for pack in packs for one in pack.parted]),
            inside,
        )

    def _suspects(self, parted: Sequence[PartedGraph]) -> tuple[PartedCase, ...]:
        keys = [key_of(one.case, one.answers) for one in parted]
        chosen = []
        for one, key in zip(parted, keys, strict=True):
            self._cut[key] += 1
            if self._cut[key] <= _MOST_CUT:
                chosen.append((one, key))
        cut = self._nodes([one for one, _ in chosen]) if chosen else []
        found = {
            one.number: tuple(nodes.parted) or self._whole(one, key, nodes)
            for (one, key), nodes in zip(chosen, cut, strict=True)
        }
        return tuple(
            PartedCase(one.number, key, found.get(one.number, ()))
            for one, key in zip(parted, keys, strict=True)
        )

    def _whole(self, one: PartedGraph, key: CauseKey, nodes: _Nodes) -> tuple[SuspectCase, ...]:
        """The graph itself, unless rounding in one node makes another one jump."""
        if nodes.operators & self.jumps and key.family.endswith(": values"):
            return ()
        return (SuspectCase(key, one.case.content, tuple(one.case.feeds)),)

    def _nodes(self, parted: Sequence[PartedGraph]) -> list[_Nodes]:
        """Of each graph the nodes that part targets when they are alone."""
        found = [_Nodes() for _ in parted]
        packed = packed_cases([one.case for one in parted])
        shown = ask_settled(self.pool, self.reader, ExposeGraphs(cases=packed))
        if not shown.ok:
            return found
        told = packed_answers(self._tensors(shown.reply.cases, len(parted)))
        cut = ask_settled(self.pool, self.reader, CutGraphs(cases=packed, answers=told))
        if not cut.ok:
            return found
        cases, origins = cases_in(cut.reply.cases), cut.reply.origins
        for case, place, answers in zip(cases, origins, self._alone(cases, origins, parted),
                                        strict=True):  # fmt: skip
            found[place].operators.update(case.leaves)
            if is_parted(answers):
                key = key_of(case, answers)
                found[place].parted.append(SuspectCase(key, case.content, tuple(case.feeds)))
        return found

    def _tensors(self, exposed: Array, count: int) -> list[GraphAnswer]:
        """What all nodes give, by the first target that gets through."""
        order = sorted(self._quick, key=lambda name: name != self.reader)
        best = [GraphAnswer(Outcome.UNSUPPORTED) for _ in range(count)]
        for name in order:
            left = [place for place, answer in enumerate(best) if answer.outcome is not Outcome.OK]
            if not left:
                break
            cases = cases_in(exposed)
            packed = packed_cases([cases[place] for place in left])
            for place, answer in zip(
                left, answers_of(self.pool, name, packed, len(left)), strict=True
            ):
                if answer.outcome is Outcome.OK:
                    best[place] = answer
        return best

    def _alone(
        self, cases: Sequence[GraphCase], origins: Sequence[int], parted: Sequence[PartedGraph]
    ) -> list[dict[str, GraphAnswer]]:
        """What every target that had the graph makes of its nodes."""
        found: list[dict[str, GraphAnswer]] = [{} for _ in cases]
        for name in (*self._quick, *self._slow):
            own = [n for n, place in enumerate(origins) if name in parted[place].answers]
            if own:
                packed = packed_cases([cases[n] for n in own])
                answers = answers_of(self.pool, name, packed, len(own))
                for n, answer in zip(own, answers, strict=True):
                    found[n][name] = answer
        return found
